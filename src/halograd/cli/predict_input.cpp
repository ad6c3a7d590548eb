#include "halograd/cli/predict_input.hpp"

#include "halograd/core/error.hpp"
#include "halograd/data/hyperslab.hpp"
#include "halograd/data/hyperslab_reader.hpp"
#include "halograd/train/model.hpp"

namespace halograd {

SampleSource inspect_input(const std::string& file, const GlobalShape& shape, const DataConfig& data) {
  const FileContents contents =
      inspect_file(file, {.shape = shape, .prediction = true, .format = file_format(data.format)});
  const std::int64_t samples = contents.layout.image.entries;
  if (samples != 1) throw DataError("{}: holds {} samples; expected a file of one to predict from", file, samples);
  return {.layout = contents.layout, .scale = contents.scale, .file = file};
}

std::vector<std::byte> read_input(const SampleSource& sample, std::int64_t channels, const Box& box) {
  std::vector<std::byte> voxels(static_cast<std::size_t>(hyperslab_bytes(sample.layout.sample(), channels, box)));
  HyperslabReader(Communicator::self(), ReadDriver::posix).read({sample.file, sample.layout}, box, voxels.data());
  return voxels;
}

void convert_to_slot(const Executor& executor, const InputUnit& input, const DataConfig& data,
                     const SampleSource& sample, const std::vector<std::byte>& voxels) {
  InputConversion({.device = executor.device(),
                   .type = input.tile.type,
                   .transform = value_transform(data),
                   .channels = input.shape.channels,
                   .own = input.own,
                   .tile = input.tile.box})
      .convert(sample, voxels.data(), executor.input_slot(0));
}

}  // namespace halograd
