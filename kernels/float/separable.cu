// Row pass and column pass of floating-point planes in one launch, with the intermediate in shared memory:
//
//     tile with its halo   ->   row sums, each in the place of its sample   ->   column sums of those
//
// The rows of the halo are filtered, too, since columns reach into them. Rows outside the plane then hold the
// row sums of the border: with a constant border those of a row of the constant.
#include "common/weights.cuh"
#include "float/tile.cuh"

WEIGHTS(RowWeights, float, row_weights, MASK_W);
WEIGHTS(ColumnWeights, float, column_weights, MASK_H);

// Adds the products of TAPS taps of a row, from tap `first` on.
template <i32 TAPS>
__device__ __forceinline__ void add_row(float (&sums)[4], const float *row, i32 first,
                                        const RowWeights &weights)
{
    const Window<TAPS> window(row + first * CHANNELS);
#pragma unroll
    for (i32 i = 0; i < TAPS; ++i) {
#pragma unroll
        for (i32 v = 0; v < 4; ++v) {
            sums[v] = __fmaf_rn(weights[first + i], window.under(i, v), sums[v]);
        }
    }
}

// Waits for the threads of the same row: no other threads read or write it.
__device__ __forceinline__ void synchronise_row()
{
    if constexpr (BLOCK_W == 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

__device__ __forceinline__ void filter_rows(float *tile, const RowWeights &weights)
{
    constexpr i32 REST = MASK_W % LOT;
#pragma unroll 1
    for (i32 above = 0; above < TILE_H; above += BLOCK_H) {
        const i32 y = above + (i32)threadIdx.y;
        float *row = tile + y * TILE_W + threadIdx.x * 4;
        float sums[4] = {};
        if (y < TILE_H) {
#pragma unroll
            for (i32 first = 0; first < MASK_W - REST; first += LOT) {
                add_row<LOT>(sums, row, first, weights);
            }
            if constexpr (REST > 0) {
                add_row<REST>(sums, row, MASK_W - REST, weights);
            }
        }
        synchronise_row();
        if (y < TILE_H) {
            *(uint4 *)row =
                make_uint4(bits_of(sums[0]), bits_of(sums[1]), bits_of(sums[2]), bits_of(sums[3]));
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    separable(const __grid_constant__ FloatPlanes planes, const float *row_pointer,
              const float *column_pointer)
{
    extern __shared__ __align__(16) float tile[];
    const FloatPlane &plane = planes.at[blockIdx.z];
    const ColumnWeights weights{column_pointer};
    const i32 sample = ((i32)blockIdx.x * BLOCK_W + (i32)threadIdx.x) * 4;
    each_tile(tile, planes, plane, [&](i32 top) {
        filter_rows(tile, RowWeights{row_pointer});
        __syncthreads();
        float sums[OUTPUTS][4];
#pragma unroll
        for (i32 k = 0; k < OUTPUTS * 4; ++k) {
            sums[k / 4][k % 4] = start_of(plane, (sample + k % 4) % CHANNELS);
        }
        const float *mine = tile + threadIdx.y * OUTPUTS * TILE_W + threadIdx.x * 4;
#pragma unroll
        for (i32 j = 0; j < MASK_H + OUTPUTS - 1; ++j) {
            const uint4 four = *(const uint4 *)(mine + j * TILE_W);
            const u32 words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (i32 o = 0; o < OUTPUTS; ++o) {
                if (j < o || j - o >= MASK_H) {
                    continue;
                }
#pragma unroll
                for (i32 v = 0; v < 4; ++v) {
                    sums[o][v] = __fmaf_rn(weights[j - o], __int_as_float((i32)words[v]), sums[o][v]);
                }
            }
        }
        wait_for_earlier_launches();
#pragma unroll
        for (i32 o = 0; o < OUTPUTS; ++o) {
            const i32 y = top + (i32)threadIdx.y * OUTPUTS + o;
            if (sample < plane.width * CHANNELS && y < plane.height) {
                store_quad(planes, plane, sample, y, sums[o]);
            }
        }
    });
}
