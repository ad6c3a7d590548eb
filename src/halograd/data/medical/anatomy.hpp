#pragma once

#include "halograd/core/random.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace halograd {

/// A place in a scan: x, y and z, each from −1 to 1 across it (left to right, back to front, feet to head).
using BodyPoint = std::array<double, 3>;

/// An ellipsoid, of which smooth noise makes something irregular.
struct Blob {
  struct Wave {
    BodyPoint direction{};
    double phase = 0;
  };
  BodyPoint centre{};
  BodyPoint radii{};
  double bumps = 0;  ///< how much the noise moves its surface, as a part of its radius
  std::array<Wave, 6> waves{};

  [[nodiscard]] bool contains(const BodyPoint& point) const;
};

/// A blob and what a scanner shows there, in Hounsfield units.
struct Tissue {
  Blob shape;
  double hounsfield = 0;
};

/// The inside of a body, as a list to paint in this order.
struct Anatomy {
  std::vector<Tissue> surroundings;  ///< the body, what is under its fat, spine, vessels, other organs
  Tissue organ;                      ///< labelled 1; 40 to 60 units brighter than the body
  std::vector<Tissue> lesions;       ///< 2 where they lie in the organ; 30 to 50 units darker than it
};

/// A body drawn from `stream`. Lesions have a radius of at least `least_radius` (of the scan's half width).
Anatomy draw_anatomy(const RandomStream& stream, double least_radius);

/// What a point holds.
struct BodyPart {
  double hounsfield = -1000;
  std::uint8_t label = 0;
};
BodyPart part_at(const Anatomy& anatomy, const BodyPoint& point);

}  // namespace halograd
