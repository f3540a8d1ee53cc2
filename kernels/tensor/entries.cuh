// The kernel entry points of tensor/direct.cu, tensor/fused.cu and tensor/separable.cu: their `convolve`,
// with one of the loaders of tiles.

#if LOADER == CP_ASYNC_ALIGNED
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    aligned(const __grid_constant__ Planes planes, const __grid_constant__ Tiles tiles)
{
    convolve<true>(planes, tiles, CpAsync<true>{planes});
}
#elif LOADER == CP_ASYNC_UNALIGNED
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    unaligned(const __grid_constant__ Planes planes, const __grid_constant__ Tiles tiles)
{
    convolve<false>(planes, tiles, CpAsync<false>{planes});
}
#else
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    streamed(const __grid_constant__ Planes planes, const __grid_constant__ Tiles tiles,
             const __grid_constant__ TensorMaps maps)
{
    __shared__ Arrivals arrivals[2];
    convolve<true>(planes, tiles, Tma{maps, arrivals});
}
#endif
