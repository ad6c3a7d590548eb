#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halograd::testing {

/// An element of a picture, its text unescaped.
struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;
  [[nodiscard]] bool is(std::string_view element, std::string_view of_class) const {
    const auto found = attributes.find("class");
    return name == element && found != attributes.end() && found->second == of_class;
  }
  [[nodiscard]] double number(const std::string& key) const {
    std::size_t used = 0;
    const std::string& value = attributes.at(key);
    const double result = std::stod(value, &used);
    if (used != value.size()) throw std::runtime_error(key + " is no number: " + value);
    return result;
  }
  [[nodiscard]] std::vector<std::pair<double, double>> points() const {
    std::vector<std::pair<double, double>> result;
    const std::string& list = attributes.at("points");
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t comma = list.find(',', at);
      const std::size_t space = std::min(list.find(' ', comma), list.size());
      result.emplace_back(std::stod(list.substr(at, comma - at)), std::stod(list.substr(comma + 1, space - comma - 1)));
      at = space + 1;
    }
    return result;
  }
};

inline std::string unescaped(std::string_view text) {
  static const std::map<std::string_view, char> entities{
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') throw std::runtime_error("a bare < in text");
    if (text[i] != '&') {
      out += text[i];
      continue;
    }
    const std::size_t end = text.find(';', i);
    if (end == std::string_view::npos) throw std::runtime_error("a bare & in text");
    out += entities.at(text.substr(i + 1, end - i - 1));
    i = end;
  }
  return out;
}

/// Reads name and attributes of "rect x="1" …".
inline Element read_tag(std::string_view tag) {
  Element element;
  std::size_t at = std::min(tag.find_first_of(" \n"), tag.size());
  element.name = tag.substr(0, at);
  while ((at = tag.find_first_not_of(" \n", at)) != std::string_view::npos) {
    const std::size_t equals = tag.find("=\"", at);
    const std::size_t end = equals == std::string_view::npos ? equals : tag.find('"', equals + 2);
    if (end == std::string_view::npos) throw std::runtime_error("an attribute without a value in " + std::string(tag));
    const auto [_, is_new] =
        element.attributes.emplace(tag.substr(at, equals - at), unescaped(tag.substr(equals + 2, end - equals - 2)));
    if (!is_new) throw std::runtime_error("an attribute twice in " + std::string(tag));
    at = end + 1;
  }
  return element;
}

/// All elements of an SVG document, in order. Throws where it is not well-formed XML with one root.
inline std::vector<Element> read_svg(std::string_view document) {
  constexpr std::string_view declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  if (!document.starts_with(declaration)) throw std::runtime_error("no XML declaration");
  document.remove_prefix(declaration.size());
  std::vector<Element> elements;
  std::vector<std::size_t> open;
  while (!document.empty()) {
    const std::size_t start = std::min(document.find('<'), document.size());
    const std::string text = unescaped(document.substr(0, start));
    if (!open.empty()) {
      elements[open.back()].text += text;
    } else if (text.find_first_not_of('\n') != std::string::npos) {
      throw std::runtime_error("text outside of the root");
    }
    if (start == document.size()) break;
    const std::size_t end = document.find('>', start);
    if (end == std::string_view::npos) throw std::runtime_error("a tag without an end");
    std::string_view tag = document.substr(start + 1, end - start - 1);
    document.remove_prefix(end + 1);
    if (tag.starts_with('/')) {
      if (open.empty() || elements[open.back()].name != tag.substr(1)) throw std::runtime_error("tags do not match");
      open.pop_back();
      continue;
    }
    if (open.empty() && !elements.empty()) throw std::runtime_error("two roots");
    const bool closed = tag.ends_with('/');
    if (closed) tag.remove_suffix(1);
    elements.push_back(read_tag(tag));
    if (!closed) open.push_back(elements.size() - 1);
  }
  if (!open.empty()) throw std::runtime_error("tags left open");
  return elements;
}

inline std::vector<Element> all_of_class(const std::vector<Element>& elements, std::string_view name,
                                         std::string_view of_class) {
  std::vector<Element> found;
  for (const Element& element : elements) {
    if (element.is(name, of_class)) found.push_back(element);
  }
  return found;
}

inline std::vector<std::string> texts_of_class(const std::vector<Element>& elements, std::string_view of_class) {
  std::vector<std::string> texts;
  for (const Element& element : all_of_class(elements, "text", of_class)) texts.push_back(element.text);
  return texts;
}

}  // namespace halograd::testing
