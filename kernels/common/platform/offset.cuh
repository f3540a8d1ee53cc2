// The offset of a field, in bytes, in a struct that the host fills too: NVRTC has no `offsetof`.
#pragma once

#ifdef __CUDACC_RTC__
#define OFFSET(STRUCT, FIELD) ((unsigned long long)__INTADDR__(&((STRUCT *)0)->FIELD))
#else
#define OFFSET(STRUCT, FIELD) __builtin_offsetof(STRUCT, FIELD)
#endif
