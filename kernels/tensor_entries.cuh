// The kernels of tensor_direct.cu and tensor_separable.cu: one `convolve`, and how its tiles come to shared memory.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) aligned(const __grid_constant__ Planes planes, const __grid_constant__ Tiles tiles)
{
    convolve<true>(planes, tiles, PieceByPiece<true>{planes});
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) unaligned(const __grid_constant__ Planes planes, const __grid_constant__ Tiles tiles)
{
    convolve<false>(planes, tiles, PieceByPiece<false>{planes});
}

#if STREAMED
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    streamed(const __grid_constant__ Planes planes, const __grid_constant__ Tiles tiles, const __grid_constant__ TileMaps maps)
{
    __shared__ Arrivals arrivals[2];
    convolve<true>(planes, tiles, Whole{maps, arrivals});
}
#endif
