#include "halograd/train/checkpoint.hpp"

#include "halograd/core/durable_file.hpp"
#include "halograd/core/error.hpp"
#include "halograd/data/hdf5_image.hpp"
#include "halograd/train/checkpoint_seal.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace halograd {
namespace {

namespace fs = std::filesystem;
using Dims = std::vector<std::int64_t>;

constexpr const char* state_group = "/state";
constexpr const char* counters_group = "/state/counters";
constexpr const char* values_group = "/state/values";

constexpr std::array<std::pair<const char*, std::int64_t CheckpointState::*>, 5> state_integers{
    {{"epoch", &CheckpointState::epoch},
     {"step", &CheckpointState::step},
     {"batch", &CheckpointState::batch},
     {"optimizer_steps", &CheckpointState::optimizer_steps},
     {"seed", &CheckpointState::seed}}};
constexpr std::array<std::pair<const char*, double CheckpointState::*>, 1> state_numbers{
    {{"best_validation_loss", &CheckpointState::best_validation_loss}}};
constexpr std::array<std::pair<const char*, std::string CheckpointState::*>, 2> state_texts{
    {{"config", &CheckpointState::config}, {"version", &CheckpointState::version}}};

std::string shape_text(const Dims& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

/// "/model" of "/model/conv1/weight".
std::string top_group(const std::string& path) {
  return path.substr(0, path.find('/', 1));
}

hid_t memory_type(std::int64_t) {
  return H5T_NATIVE_INT64;
}
hid_t memory_type(double) {
  return H5T_NATIVE_DOUBLE;
}
hid_t file_type(std::int64_t) {
  return H5T_STD_I64LE;
}
hid_t file_type(double) {
  return H5T_IEEE_F64LE;
}

// --- Writing (each under the lock) --------------------------------------------------------------------------------

void require(bool done, const fs::path& file) {
  if (!done) throw ResourceError("cannot write the checkpoint {}: {}", file.string(), hdf5_reason());
}

/// Property lists that every object of a checkpoint is made with: parents as needed, no times, so that equal contents
/// give equal bytes.
struct Creation {
  Hdf5Handle links{H5Pcreate(H5P_LINK_CREATE), H5Pclose};
  Hdf5Handle dataset{H5Pcreate(H5P_DATASET_CREATE), H5Pclose};
  Creation() {
    H5Pset_create_intermediate_group(links.id(), 1);
    H5Pset_obj_track_times(dataset.id(), false);
  }
};

void write_array(const fs::path& file, hid_t id, const Creation& creation, const NamedArray& array) {
  const std::vector<hsize_t> dims(array.dims.begin(), array.dims.end());
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose);
  const Hdf5Handle dataset(H5Dcreate2(id, array.path.c_str(), H5T_IEEE_F32LE, space.id(), creation.links.id(),
                                      creation.dataset.id(), H5P_DEFAULT),
                           H5Dclose);
  require(dataset.valid(), file);
  require(H5Dwrite(dataset.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data) >= 0, file);
}

void write_text(const fs::path& file, hid_t id, const Creation& creation, const std::string& path,
                const std::string& text) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), std::max<std::size_t>(text.size(), 1));  // HDF5 has no string of length 0
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle dataset(
      H5Dcreate2(id, path.c_str(), type.id(), space.id(), creation.links.id(), creation.dataset.id(), H5P_DEFAULT),
      H5Dclose);
  require(dataset.valid(), file);
  require(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.c_str()) >= 0, file);
}

template <typename Number>
void write_attribute(const fs::path& file, hid_t object, const std::string& name, Number value) {
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Handle attribute(H5Acreate2(object, name.c_str(), file_type(value), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose);
  require(attribute.valid() && H5Awrite(attribute.id(), memory_type(value), &value) >= 0, file);
}

Hdf5Handle create_group(const fs::path& file, hid_t id, const char* path) {
  Hdf5Handle group(H5Gcreate2(id, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  require(group.valid(), file);
  return group;
}

void write_state(const fs::path& file, hid_t id, const Creation& creation, const CheckpointState& state) {
  const Hdf5Handle group = create_group(file, id, state_group);
  for (const auto& [name, member] : state_integers) write_attribute(file, group.id(), name, state.*member);
  for (const auto& [name, member] : state_numbers) write_attribute(file, group.id(), name, state.*member);
  const Hdf5Handle counters = create_group(file, id, counters_group);
  for (const auto& [name, value] : state.counters) write_attribute(file, counters.id(), name, value);
  const Hdf5Handle values = create_group(file, id, values_group);
  for (const auto& [name, value] : state.values) write_attribute(file, values.id(), name, value);
  for (const auto& [name, member] : state_texts) {
    write_text(file, id, creation, fmt::format("{}/{}", state_group, name), state.*member);
  }
}

Hdf5Image make_image(const fs::path& file, const CheckpointState& state, std::span<const NamedArray> arrays) {
  const Hdf5Lock lock;
  Hdf5Image image(file, seal_bytes);
  const Creation creation;
  write_state(file, image.id(), creation, state);
  for (const NamedArray& array : arrays) write_array(file, image.id(), creation, array);
  return image;
}

// --- Reading (each under the lock) --------------------------------------------------------------------------------

/// Opens a file to read; one with a seal only once it is verified, so that HDF5 never sees damage.
Hdf5Handle open_verified(const fs::path& file) {
  if (has_seal(file)) verify_seal(file);
  return open_hdf5_file(file.string());
}

Hdf5Handle open_dataset(hid_t id, const std::string& path) {
  return {H5Dopen2(id, path.c_str(), H5P_DEFAULT), H5Dclose};
}

Dims dims_of(hid_t dataset) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  const auto dims = hdf5_dims(space.id());
  return {dims.begin(), dims.end()};
}

bool holds_floats(hid_t dataset) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  return H5Tget_class(type.id()) == H5T_FLOAT;
}

std::string read_text(const fs::path& file, hid_t id, const std::string& path) {
  const Hdf5Handle dataset = open_dataset(id, path);
  const Hdf5Handle type(dataset.valid() ? H5Dget_type(dataset.id()) : H5I_INVALID_HID, H5Tclose);
  std::string text(type.valid() ? H5Tget_size(type.id()) : 0, '\0');
  if (text.empty() || H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0) {
    throw DataError("{}: a checkpoint has a string {}, which is missing here", file.string(), path);
  }
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

template <typename Number>
void read_attribute(const fs::path& file, hid_t object, const std::string& name, Number& value) {
  const Hdf5Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
  if (!attribute.valid() || H5Aread(attribute.id(), memory_type(value), &value) < 0) {
    throw DataError("{}: a checkpoint has a number {}/{}, which is missing here", file.string(), state_group, name);
  }
}

Hdf5Handle open_group(const fs::path& file, hid_t id, const char* path) {
  Hdf5Handle group(H5Gopen2(id, path, H5P_DEFAULT), H5Gclose);
  if (!group.valid()) throw DataError("{}: a checkpoint has a group {}, which is missing here", file.string(), path);
  return group;
}

template <typename Number>
std::map<std::string, Number> read_attributes(const fs::path& file, hid_t id, const char* path) {
  const Hdf5Handle group = open_group(file, id, path);
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  H5Aiterate2(group.id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, collect, &names);
  std::map<std::string, Number> numbers;
  for (const std::string& name : names) read_attribute(file, group.id(), name, numbers[name]);
  return numbers;
}

CheckpointState read_state(const fs::path& file, hid_t id) {
  CheckpointState state;
  const Hdf5Handle group = open_group(file, id, state_group);
  for (const auto& [name, member] : state_integers) read_attribute(file, group.id(), name, state.*member);
  for (const auto& [name, member] : state_numbers) read_attribute(file, group.id(), name, state.*member);
  state.counters = read_attributes<std::int64_t>(file, id, counters_group);
  state.values = read_attributes<double>(file, id, values_group);
  for (const auto& [name, member] : state_texts) {
    state.*member = read_text(file, id, fmt::format("{}/{}", state_group, name));
  }
  return state;
}

std::vector<ArrayInfo> arrays_in(hid_t id) {
  std::vector<std::string> paths;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->push_back(fmt::format("/{}", name));
    return 0;
  };
  H5Lvisit(id, H5_INDEX_NAME, H5_ITER_INC, collect, &paths);
  std::vector<ArrayInfo> arrays;
  for (const std::string& path : paths) {
    const Hdf5Handle object(H5Oopen(id, path.c_str(), H5P_DEFAULT), H5Oclose);
    if (!object.valid() || H5Iget_type(object.id()) != H5I_DATASET || !holds_floats(object.id())) continue;
    arrays.push_back({path, dims_of(object.id())});
  }
  return arrays;
}

/// Throws unless the file has every one of `arrays`, with its shape, and no other in the top groups they name.
void check_same_arrays(const fs::path& file, const std::vector<ArrayInfo>& there, std::span<const NamedArray> arrays) {
  std::map<std::string, const Dims*> stored;
  for (const ArrayInfo& array : there) stored[array.path] = &array.dims;
  std::set<std::string> groups;
  const auto other = [](const std::string& path) {
    return top_group(path) == "/optimizer" ? "a checkpoint of another optimizer or model"
                                           : "a checkpoint of another model";
  };
  for (const NamedArray& array : arrays) {
    groups.insert(top_group(array.path));
    const auto found = stored.find(array.path);
    if (found == stored.end()) {
      throw DataError("{}: {}: {} is missing there and {} here", file.string(), other(array.path), array.path,
                      shape_text(array.dims));
    }
    if (*found->second != array.dims) {
      throw DataError("{}: {}: {} is {} there and {} here", file.string(), other(array.path), array.path,
                      shape_text(*found->second), shape_text(array.dims));
    }
    stored.erase(found);
  }
  for (const auto& [path, dims] : stored) {
    if (!groups.contains(top_group(path))) continue;
    throw DataError("{}: {}: {} is {} there and missing here", file.string(), other(path), path, shape_text(*dims));
  }
}

void read_arrays(const fs::path& file, hid_t id, std::span<const NamedArray> arrays) {
  check_same_arrays(file, arrays_in(id), arrays);
  for (const NamedArray& array : arrays) {
    const Hdf5Handle dataset = open_dataset(id, array.path);
    if (!dataset.valid() || H5Dread(dataset.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data) < 0) {
      throw DataError("{}: cannot read {}: {}", file.string(), array.path, hdf5_reason());
    }
  }
}

}  // namespace

void write_checkpoint(const fs::path& file, const CheckpointState& state, std::span<const NamedArray> arrays) {
  try {
    write_file(file, make_image(file, state, arrays).bytes(), fmt::format("the checkpoint {}", file.string()));
    seal_file(file, state.step);
    sync_path(file);
  } catch (...) {
    std::error_code ignored;
    fs::remove(file, ignored);
    throw;
  }
}

CheckpointState read_checkpoint(const fs::path& file, std::span<const NamedArray> arrays) {
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_verified(file);
  if (!has_seal(file)) throw DataError("{}: not a checkpoint of HaloGrad: it has no checksum", file.string());
  CheckpointState state = read_state(file, handle.id());
  read_arrays(file, handle.id(), arrays);
  return state;
}

void read_weights(const fs::path& file, std::span<const NamedArray> arrays) {
  std::vector<NamedArray> weights(arrays.begin(), arrays.end());
  std::erase_if(weights, [](const NamedArray& array) { return top_group(array.path) != "/model"; });
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_verified(file);
  read_arrays(file, handle.id(), weights);
}

CheckpointState read_checkpoint_state(const fs::path& file) {
  return read_checkpoint(file, {});
}

std::vector<ArrayInfo> list_arrays(const fs::path& file) {
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_verified(file);
  return arrays_in(handle.id());
}

bool is_checkpoint(const fs::path& file) {
  return has_seal(file);
}

}  // namespace halograd
