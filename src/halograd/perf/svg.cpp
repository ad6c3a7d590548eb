#include "halograd/perf/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace halograd {
namespace {

std::string number(double value) {
  if (!std::isfinite(value)) throw std::logic_error("a coordinate of a picture is not finite");
  return fmt::format("{:.2f}", std::abs(value) < 0.005 ? 0.0 : value);
}

std::string attribute(std::string_view key, std::string_view value) {
  return value.empty() ? std::string() : fmt::format(R"( {}="{}")", key, xml_escaped(value));
}

std::string coordinates(std::span<const SvgPoint> points) {
  std::string out;
  for (const auto& [x, y] : points) out += fmt::format("{}{},{}", out.empty() ? "" : " ", number(x), number(y));
  return out;
}

std::string fill(const FillStyle& style) {
  return attribute("class", style.name) + attribute("fill", style.colour) + attribute("stroke", style.outline);
}

/// Bytes of the character that a text starts with; 0 where it is not UTF-8 or not allowed in XML.
std::size_t character_bytes(std::string_view text) {
  const std::uint32_t lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return lead < 0x20 ? 0 : 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  std::uint32_t code = lead & (0x7FU >> length);
  for (const char c : text.substr(1, length - 1)) {
    const std::uint32_t byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U) return 0;
    code = (code << 6U) | (byte & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code == 0xFFFE || code == 0xFFFF || code > 0x10FFFF ? 0 : length;
}

/// Widths in DejaVu Sans, the widest of the usual fonts, by sorts of characters. The first byte of a character counts.
double em_width(char c) {
  constexpr std::string_view narrow = "ijl.,:;'|! ";
  constexpr std::string_view slim = "frt-()/[]";
  constexpr std::string_view wide = "mwMW%@&+=<>#";
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x80) return (byte & 0xC0U) == 0x80U ? 0 : 0.84;
  if (narrow.find(c) != std::string_view::npos) return 0.34;
  if (slim.find(c) != std::string_view::npos) return 0.42;
  if (wide.find(c) != std::string_view::npos) return 0.98;
  return c >= 'A' && c <= 'Z' ? 0.76 : 0.64;
}

/// Decimals that show `digits` digits from the first that is not 0.
int decimals(double value, int digits) {
  return std::clamp(digits - 1 - static_cast<int>(std::floor(std::log10(value))), 0, 12);
}

}  // namespace

SvgWriter::SvgWriter(std::string_view title, double width, double height) {
  const std::string w = number(width);
  const std::string h = number(height);
  document_ = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" role=\"img\">\n<title>{2}</title>\n",
      w, h, xml_escaped(title));
  rect(0, 0, width, height, {.colour = "#FFFFFF", .name = "background"});
}

void SvgWriter::rect(double x, double y, double width, double height, const FillStyle& style) {
  document_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>\n", number(x), number(y),
                           number(width), number(height), fill(style));
}

void SvgWriter::line(std::span<const SvgPoint> points, const LineStyle& style) {
  document_ += fmt::format("<polyline points=\"{}\"{} fill=\"none\"{} stroke-width=\"{}\"{}/>\n", coordinates(points),
                           attribute("class", style.name), attribute("stroke", style.colour), number(style.width),
                           attribute("stroke-dasharray", style.dashes));
}

void SvgWriter::line(SvgPoint from, SvgPoint to, const LineStyle& style) {
  const SvgPoint ends[] = {from, to};
  line(ends, style);
}

void SvgWriter::polygon(std::span<const SvgPoint> points, const FillStyle& style) {
  document_ += fmt::format("<polygon points=\"{}\"{}/>\n", coordinates(points), fill(style));
}

void SvgWriter::text(double x, double y, std::string_view text, const TextStyle& style) {
  constexpr std::string_view anchors[] = {"start", "middle", "end"};
  const std::string at_x = number(x);
  const std::string at_y = number(y);
  document_ +=
      fmt::format("<text x=\"{}\" y=\"{}\"{} font-size=\"{}\" text-anchor=\"{}\"{}{}{}>{}</text>\n", at_x, at_y,
                  attribute("class", style.name), number(style.size), anchors[static_cast<int>(style.anchor)],
                  style.bold ? " font-weight=\"bold\"" : "", attribute("fill", style.colour),
                  style.upright ? fmt::format(" transform=\"rotate(-90 {} {})\"", at_x, at_y) : "", xml_escaped(text));
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_bytes(text);
    switch (text.front()) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&apos;"; break;
      default:
        if (length > 0) {
          out += text.substr(0, length);
        } else {
          out += static_cast<unsigned char>(text.front()) < 0x20 ? " " : "\xEF\xBF\xBD";
        }
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

double text_width(std::string_view text, const TextStyle& style) {
  double em = 0;
  for (const char c : text) em += em_width(c);
  return em * style.size * (style.bold ? 1.12 : 1);
}

std::vector<std::string> wrapped(std::string_view text, double width, const TextStyle& style) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
    if (lines.back().empty()) {
      lines.back() = word;
    } else if (const std::string longer = lines.back() + ' ' + word; text_width(longer, style) <= width) {
      lines.back() = longer;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

double round_tick(double range, int most) {
  double decade = std::pow(10.0, std::floor(std::log10(range / most)));
  // Rounding of the logarithm may put the decade one too low: the last factor covers that.
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (decade * factor * most >= range) return decade * factor;
  }
  return decade * 10;
}

std::string tick_label(double value, double tick) {
  return fmt::format("{:.{}f}", value, decimals(tick * (1 + 1e-9), 1));
}

std::string three_digits(double value) {
  if (value <= 0) return fmt::format("{:.0f}", value);
  // Rounded before its decimals are counted: 0.9999 is 1.00.
  const double scale = std::pow(10.0, 2 - std::floor(std::log10(value)));
  const double rounded = std::round(value * scale) / scale;
  return fmt::format("{:.{}f}", value, decimals(rounded * (1 + 1e-9), 3));
}

}  // namespace halograd
