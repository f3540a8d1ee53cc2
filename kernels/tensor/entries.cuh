// The kernel of tensor/direct.cu, tensor/fused.cu and tensor/separable.cu: their `convolve`, with the way in which tiles come to shared memory.

#if LOADER == 0
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) aligned(const __grid_constant__ Planes planes, const __grid_constant__ Tiles tiles)
{
    convolve<true>(planes, tiles, PieceByPiece<true>{planes});
}
#elif LOADER == 1
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) unaligned(const __grid_constant__ Planes planes, const __grid_constant__ Tiles tiles)
{
    convolve<false>(planes, tiles, PieceByPiece<false>{planes});
}
#else
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    streamed(const __grid_constant__ Planes planes, const __grid_constant__ Tiles tiles, const __grid_constant__ TileMaps maps)
{
    __shared__ Arrivals arrivals[2];
    convolve<true>(planes, tiles, Whole{maps, arrivals});
}
#endif
