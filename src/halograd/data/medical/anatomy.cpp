#include "halograd/data/medical/anatomy.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace halograd {
namespace {

/// Numbers of a stream, one after the other.
class Draws {
public:
  explicit Draws(const RandomStream& stream) : stream_(stream) {}

  double between(double low, double high) { return low + (high - low) * stream_.uniform53(next_++); }
  /// `value` up to a part `spread` more or less.
  double about(double value, double spread) { return value * between(1 - spread, 1 + spread); }
  BodyPoint direction() {
    const double up = between(-1, 1);
    const double angle = between(0, 2 * std::numbers::pi);
    const double level = std::sqrt(1 - up * up);
    return {level * std::cos(angle), level * std::sin(angle), up};
  }

private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

Blob draw_blob(Draws& draws, const BodyPoint& centre, const BodyPoint& radii, double bumps) {
  Blob blob{.centre = centre, .radii = radii, .bumps = bumps};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    blob.centre[axis] += draws.between(-0.04, 0.04);
    blob.radii[axis] = draws.about(radii[axis], 0.1);
  }
  for (Blob::Wave& wave : blob.waves) {
    wave.direction = draws.direction();
    const double frequency = draws.between(4, 8);
    for (double& component : wave.direction) component *= frequency;
    wave.phase = draws.between(0, 2 * std::numbers::pi);
  }
  return blob;
}

std::vector<Tissue> draw_surroundings(Draws& draws, double body, double organ) {
  const auto tissue = [&](const BodyPoint& centre, const BodyPoint& radii, double bumps, double hounsfield) {
    return Tissue{draw_blob(draws, centre, radii, bumps), hounsfield};
  };
  std::vector<Tissue> list;
  Tissue fat = tissue({0, 0, 0}, {0.88, 0.72, 2.2}, 0.02, -90);
  Tissue inner = fat;
  for (double& radius : inner.shape.radii) radius *= 0.88;
  inner.hounsfield = body;
  list.push_back(fat);
  list.push_back(inner);
  list.push_back(tissue({0.38, 0.02, 1.05}, {0.3, 0.4, 0.42}, 0.05, -800));  // lungs
  list.push_back(tissue({-0.38, 0.02, 1.05}, {0.3, 0.4, 0.42}, 0.05, -800));
  list.push_back(tissue({0, -0.42, 0}, {0.11, 0.11, 3}, 0, draws.about(350, 0.2)));               // spine
  list.push_back(tissue({-0.06, -0.22, 0}, {0.06, 0.06, 3}, 0, draws.about(190, 0.1)));           // aorta
  list.push_back(tissue({0.33, -0.35, -0.45}, {0.11, 0.12, 0.22}, 0.08, draws.about(170, 0.1)));  // kidneys
  list.push_back(tissue({-0.33, -0.35, -0.4}, {0.11, 0.12, 0.22}, 0.08, draws.about(170, 0.1)));
  list.push_back(tissue({-0.52, -0.12, 0.15}, {0.14, 0.2, 0.26}, 0.08, organ + draws.between(15, 30)));  // spleen
  list.push_back(tissue({-0.38, 0.22, 0.25}, {0.22, 0.2, 0.28}, 0.1, draws.between(10, 30)));            // stomach
  return list;
}

}  // namespace

bool Blob::contains(const BodyPoint& point) const {
  double square = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double part = (point[axis] - centre[axis]) / radii[axis];
    square += part * part;
  }
  const double distance = std::sqrt(square);
  if (distance >= 1 + bumps) return false;
  if (distance < 1 - bumps) return true;
  double noise = 0;
  for (const Wave& wave : waves) {
    noise += std::cos(wave.direction[0] * point[0] + wave.direction[1] * point[1] + wave.direction[2] * point[2] +
                      wave.phase);
  }
  return distance < 1 + bumps * std::clamp(noise / 3, -1.0, 1.0);
}

Anatomy draw_anatomy(const RandomStream& stream, double least_radius) {
  Draws draws(stream);
  const double body = draws.between(50, 65);
  const double organ = body + draws.between(40, 60);
  Anatomy anatomy;
  anatomy.surroundings = draw_surroundings(draws, body, organ);
  anatomy.organ = {draw_blob(draws, {0.27, 0.06, 0.1}, {0.46, 0.44, 0.52}, 0.25), organ};
  const auto count = static_cast<int>(draws.between(2, 5));
  for (int i = 0; i < count; ++i) {
    const BodyPoint direction = draws.direction();
    const double reach = draws.between(0.1, 0.55);
    const double radius = std::max(least_radius, draws.between(0.1, 0.19));
    BodyPoint centre{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      centre[axis] = anatomy.organ.shape.centre[axis] + reach * direction[axis] * anatomy.organ.shape.radii[axis];
    }
    const BodyPoint radii = {draws.about(radius, 0.15), draws.about(radius, 0.15), draws.about(radius, 0.15)};
    anatomy.lesions.push_back({draw_blob(draws, centre, radii, 0.15), organ - draws.between(30, 50)});
  }
  return anatomy;
}

BodyPart part_at(const Anatomy& anatomy, const BodyPoint& point) {
  BodyPart part;
  if (!anatomy.surroundings.front().shape.contains(point)) return part;
  const Blob& under_the_fat = anatomy.surroundings[1].shape;
  if (anatomy.organ.shape.contains(point) && under_the_fat.contains(point)) {
    part = {anatomy.organ.hounsfield, 1};
    for (const Tissue& lesion : anatomy.lesions) {
      if (lesion.shape.contains(point)) part = {lesion.hounsfield, 2};
    }
    return part;
  }
  for (const Tissue& tissue : anatomy.surroundings) {
    if (tissue.shape.contains(point)) part.hounsfield = tissue.hounsfield;
  }
  return part;
}

}  // namespace halograd
