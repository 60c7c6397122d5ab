/* Macros for features of compilers: inlining, and functions compiled for several generations of processors. */

/* Operations must be rounded to their own format: results in the x87's wider format would be rounded twice. */
#if FLT_EVAL_METHOD != 0
#error "floats are computed in a wider format here"
#endif

#if defined(__GNUC__)
#define INLINE inline __attribute__((always_inline))
#define APART __attribute__((noinline))
#else
#define INLINE inline
#define APART
#endif

/* Loops are separate functions: compilers ignore the rounding mode, and might move operations to before it is set.
   If compiler and C library support this, the loops are compiled for several x86-64 generations and selected at load.
   FLOATLAB_MOST is the highest level: 4 has AVX-512, 3 has AVX2; below 3, only the compiler's target is used. */
#ifndef FLOATLAB_MOST
#define FLOATLAB_MOST 4
#endif
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#if FLOATLAB_MOST >= 4
#define CLONES APART __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif FLOATLAB_MOST == 3
#define CLONES APART __attribute__((target_clones("arch=x86-64-v3", "default")))
#endif
#endif
#ifndef CLONES
#define CLONES APART
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define SCALAR APART __attribute__((optimize("no-tree-vectorize")))
#else
#define SCALAR APART
#endif
