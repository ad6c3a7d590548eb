#pragma once

#include "halograd/kernels/chain.hpp"
#include "halograd/kernels/conv3d.hpp"

namespace halograd {

// Bases of kernels on the host that are written for buffers of one type, float or Bf16.

template <typename T>
class TypedConv3d : public Conv3d {
public:
  void forward(const void* x, void* y) final { forward(static_cast<const T*>(x), static_cast<T*>(y)); }
  void backward_data(const void* dy, void* dx) final { backward_data(static_cast<const T*>(dy), static_cast<T*>(dx)); }
  void backward_weights(const void* x, const void* dy, float* dw) final {
    backward_weights(static_cast<const T*>(x), static_cast<const T*>(dy), dw);
  }

  virtual void forward(const T* x, T* y) = 0;
  virtual void backward_data(const T* dy, T* dx) = 0;
  virtual void backward_weights(const T* x, const T* dy, float* dw) = 0;
};

template <typename T, typename U>
FaceBuffers<T> faces_of(const FaceBuffers<U>& faces) {
  FaceBuffers<T> typed;
  for (std::size_t i = 0; i < 3; ++i) {
    typed.lo[i] = static_cast<T*>(faces.lo[i]);
    typed.hi[i] = static_cast<T*>(faces.hi[i]);
  }
  return typed;
}

template <typename T>
class TypedChain : public Chain {
public:
  void moments(const void* y, double* mean, double* m2) final { moments(static_cast<const T*>(y), mean, m2); }
  void forward(const void* y, const FaceBuffers<const void>& faces, const Normalisation& norm,
               const DropoutKey& dropout, const Box& part, void* dst, std::uint8_t* argmax) final {
    forward(static_cast<const T*>(y), faces_of<const T>(faces), norm, now(dropout), part, static_cast<T*>(dst), argmax);
  }
  void backward_faces(const void* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                      const FaceBuffers<void>& dfaces) final {
    backward_faces(static_cast<const T*>(dout), argmax, now(dropout), faces_of<T>(dfaces));
  }
  void backward_sums(const void* y, const FaceBuffers<const void>& received, const Normalisation& norm,
                     const void* dout, const std::uint8_t* argmax, const DropoutKey& dropout, const Box& part,
                     double* sums) final {
    backward_sums(static_cast<const T*>(y), faces_of<const T>(received), norm, static_cast<const T*>(dout), argmax,
                  now(dropout), part, sums);
  }
  void backward_data(const void* y, const FaceBuffers<const void>& received, const Normalisation& norm,
                     const void* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                     const NormGradient& statistics, void* dy) final {
    backward_data(static_cast<const T*>(y), faces_of<const T>(received), norm, static_cast<const T*>(dout), argmax,
                  now(dropout), statistics, static_cast<T*>(dy));
  }

  virtual void moments(const T* y, double* mean, double* m2) = 0;
  virtual void forward(const T* y, const FaceBuffers<const T>& faces, const Normalisation& norm,
                       const DropoutKey& dropout, const Box& part, T* dst, std::uint8_t* argmax) = 0;
  virtual void backward_faces(const T* dout, const std::uint8_t* argmax, const DropoutKey& dropout,
                              const FaceBuffers<T>& dfaces) = 0;
  virtual void backward_sums(const T* y, const FaceBuffers<const T>& received, const Normalisation& norm, const T* dout,
                             const std::uint8_t* argmax, const DropoutKey& dropout, const Box& part, double* sums) = 0;
  virtual void backward_data(const T* y, const FaceBuffers<const T>& received, const Normalisation& norm, const T* dout,
                             const std::uint8_t* argmax, const DropoutKey& dropout, const NormGradient& statistics,
                             T* dy) = 0;

private:
  /// The key with its stream at the step that stands there now.
  static DropoutKey now(DropoutKey key) {
    if (key.step != nullptr) key.stream.step = *key.step;
    return key;
  }
};

}  // namespace halograd
