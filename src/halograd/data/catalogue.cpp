#include "halograd/data/catalogue.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/log.hpp"
#include "halograd/core/system.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>

namespace halograd {
namespace {

constexpr std::int64_t many_files = 200;
constexpr double seconds_between_lines = 5.0;

/// Appends values as bytes, for ranks of the same program.
template <typename Value>
void put(std::string& bytes, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(Value));
}

/// Takes them off again, in the same order.
template <typename Value>
Value take(std::string_view& bytes) {
  static_assert(std::is_trivially_copyable_v<Value>);
  Value value;
  std::memcpy(&value, bytes.data(), sizeof(Value));
  bytes.remove_prefix(sizeof(Value));
  return value;
}

/// The number of `layout` among `layouts`, where it is put if new.
std::int32_t number_of(std::vector<FileLayout>& layouts, const FileLayout& layout) {
  const auto number = std::find(layouts.begin(), layouts.end(), layout) - layouts.begin();
  if (number == std::ssize(layouts)) layouts.push_back(layout);
  return static_cast<std::int32_t>(number);
}

/// The files of one rank on their way to the others: what each holds, in order, and after that the layouts it is put
/// down in terms of.
class Share {
public:
  void add(const FileContents& contents) {
    put(files_, number_of(layouts_, contents.layout));
    put(files_, contents.scale);
    for (std::size_t i = 0; i < contents.targets.size(); ++i) {
      put(files_, contents.targets[i]);
      put(files_, contents.physical[i].has_value());
      if (contents.physical[i]) put(files_, *contents.physical[i]);
    }
  }

  [[nodiscard]] std::string bytes() const {
    std::string all;
    put(all, layouts_.size());
    for (const FileLayout& layout : layouts_) put(all, layout);
    return all + files_;
  }

private:
  std::vector<FileLayout> layouts_;
  std::string files_;
};

/// Reads a rank's share back, file by file.
class ShareReader {
public:
  ShareReader(std::string_view bytes, std::vector<FileLayout>& layouts) : bytes_(bytes) {
    const auto count = take<std::size_t>(bytes_);
    for (std::size_t i = 0; i < count; ++i) numbers_.push_back(number_of(layouts, take<FileLayout>(bytes_)));
  }

  /// Adds the share's next file to the catalogue.
  void next(Catalogue& catalogue) {
    catalogue.layout_of.push_back(numbers_[static_cast<std::size_t>(take<std::int32_t>(bytes_))]);
    catalogue.scales.push_back(take<ValueScale>(bytes_));
    const std::int64_t entries = catalogue.layouts[static_cast<std::size_t>(catalogue.layout_of.back())].image.entries;
    for (std::int64_t i = 0; i < entries; ++i) {
      catalogue.targets.push_back(take<Cosmology>(bytes_));
      const bool has_physical = take<bool>(bytes_);
      catalogue.physical.push_back(has_physical ? std::optional(take<Cosmology>(bytes_)) : std::nullopt);
    }
    catalogue.first_universe.push_back(catalogue.universes());
  }

private:
  std::string_view bytes_;
  std::vector<std::int32_t> numbers_;  // of the share's layouts in the catalogue
};

Share inspect_share(const Communicator& communicator, const std::filesystem::path& directory,
                    const std::vector<std::string>& names, const FileExpectation& expected) {
  Share share;
  const auto files = static_cast<std::int64_t>(names.size());
  double last_line = now_seconds();
  for (std::int64_t i = communicator.rank(); i < files; i += communicator.size()) {
    share.add(inspect_file((directory / names[static_cast<std::size_t>(i)]).string(), expected));
    const bool tell = communicator.rank() == 0 && files > many_files;
    if (!tell || now_seconds() - last_line < seconds_between_lines) continue;
    log::info("looked into {} of the {} files of {}", i + 1, files, directory.string());
    last_line = now_seconds();
  }
  return share;
}

}  // namespace

Catalogue inspect_files(const Communicator& communicator, const std::filesystem::path& directory,
                        std::vector<std::string> names, const FileExpectation& expected) {
  Share share;
  agree(communicator, [&] { share = inspect_share(communicator, directory, names, expected); });
  const std::vector<std::string> shares = communicator.all_gather(share.bytes());

  Catalogue catalogue;
  catalogue.names = std::move(names);
  catalogue.first_universe.push_back(0);
  std::vector<ShareReader> readers;
  for (const std::string& bytes : shares) readers.emplace_back(bytes, catalogue.layouts);
  for (std::int64_t i = 0; i < catalogue.files(); ++i) {
    readers[static_cast<std::size_t>(i % communicator.size())].next(catalogue);
  }
  return catalogue;
}

}  // namespace halograd
