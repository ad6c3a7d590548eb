#include "halograd/data/synthetic/fftw_version.hpp"

#include <fftw3.h>

namespace halograd {

std::string fftw_version() {
  // "fftw-3.3.10-sse2-avx…": what stands between the first and the second dash.
  const std::string text = fftwf_version;
  const std::size_t begin = text.find('-') + 1;
  return text.substr(begin, text.find('-', begin) - begin);
}

}  // namespace halograd
