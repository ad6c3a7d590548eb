#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halograd {

/// Okabe and Ito's palette: told apart with any kind of colour blindness, and by their lightness in grey.
namespace okabe_ito {
inline constexpr std::string_view orange = "#E69F00";
inline constexpr std::string_view sky_blue = "#56B4E9";
inline constexpr std::string_view green = "#009E73";
inline constexpr std::string_view blue = "#0072B2";
inline constexpr std::string_view vermilion = "#D55E00";
inline constexpr std::string_view purple = "#CC79A7";
}  // namespace okabe_ito

enum class TextAnchor { start, middle, end };

struct TextStyle {
  double size = 10;  ///< pixels, as all lengths here
  TextAnchor anchor = TextAnchor::start;
  bool bold = false;
  bool upright = false;  ///< turned by a quarter, to be read from bottom to top
  std::string_view colour = "#222222";
  std::string_view name = {};  ///< the element's class
};

struct LineStyle {
  std::string_view colour = "#222222";
  double width = 1;
  std::string_view dashes = {};  ///< "5 3"; empty: a solid line
  std::string_view name = {};
};

struct FillStyle {
  std::string_view colour;
  std::string_view outline = {};  ///< empty: none
  std::string_view name = {};
};

using SvgPoint = std::pair<double, double>;

/// Writes a standalone SVG document: x to the right, y down, on a white ground that is painted so that it reads in dark
/// viewers too. Texts are escaped. Throws std::logic_error for a coordinate that is not finite.
class SvgWriter {
public:
  SvgWriter(std::string_view title, double width, double height);

  void rect(double x, double y, double width, double height, const FillStyle& style);
  void line(std::span<const SvgPoint> points, const LineStyle& style = {});
  void line(SvgPoint from, SvgPoint to, const LineStyle& style = {});
  void polygon(std::span<const SvgPoint> points, const FillStyle& style);
  /// `y` is the baseline.
  void text(double x, double y, std::string_view text, const TextStyle& style = {});

  /// The whole document.
  [[nodiscard]] std::string finish() const { return document_ + "</svg>\n"; }

private:
  std::string document_;
};

/// As XML has it: markup escaped, control characters made spaces, what is not UTF-8 replaced by U+FFFD.
std::string xml_escaped(std::string_view text);

/// About how wide a text is at most in the usual sans-serif fonts: the viewer's is not known.
double text_width(std::string_view text, const TextStyle& style = {});

/// Breaks a text at spaces into lines no wider than `width`, longer words excepted. At least one line.
std::vector<std::string> wrapped(std::string_view text, double width, const TextStyle& style = {});

/// 1, 2 or 5 times a power of ten: the step at which `most` ticks at most cover 0 to `range`.
double round_tick(double range, int most);

/// With as many decimals as multiples of `tick` need.
std::string tick_label(double value, double tick);

/// Three digits, never with an exponent: "0.00123", "1.77", "512".
std::string three_digits(double value);

}  // namespace halograd
