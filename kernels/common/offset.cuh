// Where a field lies in a struct that the host fills too, in bytes. NVRTC has no word of its own for it.
#pragma once

#ifdef __CUDACC_RTC__
#define OFFSET(STRUCT, FIELD) ((unsigned long long)__INTADDR__(&((STRUCT *)0)->FIELD))
#else
#define OFFSET(STRUCT, FIELD) __builtin_offsetof(STRUCT, FIELD)
#endif
