#include "halograd/data/hdf5_describe.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"
#include "halograd/data/hdf5_handle.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

namespace halograd {
namespace {

constexpr std::size_t values_shown = 16;
constexpr std::size_t text_shown = 200;
constexpr int deepest = 64;  // hard links may form a circle

/// Reads all elements of a dataset or attribute into a buffer as the given type; false where HDF5 fails.
using Read = std::function<bool(hid_t type, void* buffer)>;

template <typename Value>
std::string numbers(const Read& read, hid_t type, std::size_t count, std::string_view format) {
  std::vector<Value> values(count);
  if (!read(type, values.data())) return "(unreadable)";
  std::vector<std::string> texts;
  for (const Value& value : values) texts.push_back(fmt::format(fmt::runtime(format), value));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string quoted(std::string text) {
  if (text.size() > text_shown) text = text.substr(0, text_shown) + "…";
  return '"' + text + '"';
}

std::string strings(const Read& read, hid_t type, hid_t space, std::size_t count) {
  std::vector<std::string> texts;
  if (H5Tis_variable_str(type) > 0) {
    const Hdf5Handle memory_type(H5Tcopy(type), H5Tclose);
    std::vector<char*> values(count, nullptr);
    if (!read(memory_type.id(), values.data())) return "(unreadable)";
    for (const char* value : values) texts.push_back(quoted(value == nullptr ? "" : value));
    H5Dvlen_reclaim(memory_type.id(), space, H5P_DEFAULT, values.data());
  } else {
    const std::size_t size = H5Tget_size(type);
    std::string values(count * size, '\0');
    if (!read(type, values.data())) return "(unreadable)";
    for (std::size_t i = 0; i < count; ++i) texts.push_back(quoted(values.substr(i * size, size).c_str()));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string value_text(const Read& read, hid_t type, hid_t space) {
  const std::vector<hsize_t> dims = hdf5_dims(space);
  const hssize_t points = H5Sget_simple_extent_npoints(space);
  if (points < 1 || static_cast<std::size_t>(points) > values_shown) return "";
  const auto count = static_cast<std::size_t>(points);
  std::string text;
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      text = H5Tget_sign(type) == H5T_SGN_NONE ? numbers<unsigned long long>(read, H5T_NATIVE_ULLONG, count, "{}")
                                               : numbers<long long>(read, H5T_NATIVE_LLONG, count, "{}");
      break;
    case H5T_FLOAT:
      text = numbers<double>(read, H5T_NATIVE_DOUBLE, count, H5Tget_size(type) <= 4 ? "{:.7g}" : "{:.15g}");
      break;
    case H5T_STRING: text = strings(read, type, space, count); break;
    default: return "";
  }
  return dims.empty() ? text : '[' + text + ']';
}

std::string filter_text(hid_t creation, unsigned index) {
  unsigned flags = 0;
  std::array<unsigned, 8> values{};
  std::size_t count = values.size();
  std::array<char, 64> name{};
  unsigned config = 0;
  const H5Z_filter_t filter =
      H5Pget_filter2(creation, index, &flags, &count, values.data(), name.size(), name.data(), &config);
  switch (filter) {
    case H5Z_FILTER_DEFLATE: return fmt::format("gzip {}", values[0]);
    case H5Z_FILTER_SHUFFLE: return "shuffle";
    case H5Z_FILTER_FLETCHER32: return "checksum";
    case H5Z_FILTER_SZIP: return "szip";
    default: return name[0] != '\0' ? std::string(name.data()) : fmt::format("filter {}", static_cast<int>(filter));
  }
}

std::string storage_text(hid_t dataset) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  switch (H5Pget_layout(creation.id())) {
    case H5D_COMPACT: return "compact";
    case H5D_CONTIGUOUS: return H5Pget_external_count(creation.id()) > 0 ? "in external files" : "contiguous";
    case H5D_VIRTUAL: return "virtual: in other files";
    case H5D_CHUNKED: break;
    default: return "unknown";
  }
  std::string text = "chunked " + hdf5_shape_text(hdf5_chunk_dims(creation.id()));
  const int filters = H5Pget_nfilters(creation.id());
  for (int i = 0; i < filters; ++i) text += ", " + filter_text(creation.id(), static_cast<unsigned>(i));
  return text;
}

std::string name_of(hid_t attribute) {
  const ssize_t length = H5Aget_name(attribute, 0, nullptr);
  std::string name(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  if (length > 0) H5Aget_name(attribute, name.size() + 1, name.data());
  return name;
}

void describe_attributes(hid_t object, Hdf5Item& item) {
  for (hsize_t i = 0;; ++i) {
    const Hdf5Handle attribute(H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
                               H5Aclose);
    if (!attribute.valid()) return;  // past the last
    const Hdf5Handle type(H5Aget_type(attribute.id()), H5Tclose);
    const Hdf5Handle space(H5Aget_space(attribute.id()), H5Sclose);
    const Read read = [&](hid_t as, void* out) { return H5Aread(attribute.id(), as, out) >= 0; };
    std::string value = value_text(read, type.id(), space.id());
    if (value.empty()) value = hdf5_shape_text(hdf5_dims(space.id())) + " of " + hdf5_type_text(type.id());
    item.attributes.emplace_back(name_of(attribute.id()), std::move(value));
  }
}

void describe_dataset(hid_t dataset, Hdf5Item& item) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  for (const hsize_t extent : hdf5_dims(space.id())) item.shape.push_back(static_cast<std::int64_t>(extent));
  item.type = hdf5_type_text(type.id());
  item.storage = storage_text(dataset);
  item.stored_bytes = static_cast<std::int64_t>(H5Dget_storage_size(dataset));
  const Read read = [dataset](hid_t as, void* out) {
    return H5Dread(dataset, as, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0;
  };
  item.value = value_text(read, type.id(), space.id());
}

struct Walk {
  const std::string& file;
  std::vector<Hdf5Item> items;

  void object(hid_t id, const std::string& path, int depth) {
    if (depth > deepest) throw DataError("{}: groups deeper than {}; expected no circle of links", file, deepest);
    Hdf5Item item;
    item.path = path;
    const H5I_type_t kind = H5Iget_type(id);
    item.kind = kind == H5I_GROUP ? "group" : (kind == H5I_DATASET ? "dataset" : "type");
    if (kind == H5I_DATASET) describe_dataset(id, item);
    describe_attributes(id, item);
    items.push_back(std::move(item));
    if (kind == H5I_GROUP) children(id, path == "/" ? path : path + '/', depth);
  }

  void children(hid_t group, const std::string& prefix, int depth) {
    H5G_info_t info{};
    if (H5Gget_info(group, &info) < 0) throw DataError("{}: group {} is damaged ({})", file, prefix, hdf5_reason());
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      const ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, nullptr, 0, H5P_DEFAULT);
      if (length < 0) throw DataError("{}: group {} is damaged ({})", file, prefix, hdf5_reason());
      std::string name(static_cast<std::size_t>(length), '\0');
      H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size() + 1, H5P_DEFAULT);
      child(group, name, prefix + name, depth + 1);
    }
  }

  void child(hid_t group, const std::string& name, const std::string& path, int depth) {
    H5L_info_t link{};
    if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) {
      items.push_back(
          {.path = path, .kind = "link", .shape = {}, .type = {}, .storage = {}, .value = {}, .attributes = {}});
      return;
    }
    const Hdf5Handle handle(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (!handle.valid()) throw DataError("{}: {} cannot be opened ({})", file, path, hdf5_reason());
    object(handle.id(), path, depth);
  }
};

}  // namespace

std::vector<Hdf5Item> describe_hdf5(const std::string& file) {
  const Hdf5Lock lock;
  const Hdf5Handle handle = open_hdf5_file(file);
  const Hdf5Handle root(H5Oopen(handle.id(), "/", H5P_DEFAULT), H5Oclose);
  if (!root.valid()) throw DataError("{}: its root cannot be opened ({})", file, hdf5_reason());
  Walk walk{file, {}};
  walk.object(root.id(), "/", 0);
  return std::move(walk.items);
}

std::string to_text(const Hdf5Item& item) {
  std::string text = item.path + (item.kind == "dataset" ? "" : "  " + item.kind);
  if (item.kind == "dataset") {
    text += fmt::format("  [{}] {}, {}, {}", fmt::join(item.shape, ","), item.type, item.storage,
                        format_bytes(static_cast<double>(item.stored_bytes)));
    if (!item.value.empty()) text += "  = " + item.value;
  }
  for (const auto& [name, value] : item.attributes) text += fmt::format("\n    @{} = {}", name, value);
  return text;
}

}  // namespace halograd
