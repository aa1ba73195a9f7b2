/* Doses of known work: K dependent pairs of multiply and add, straight-line
 * code, so that neither a loop's exit nor the compiler changes the amount. */
#ifndef UNDERTICK_DOSE_H
#define UNDERTICK_DOSE_H
#include <stdint.h>

#if defined(__x86_64__)
#define DOSE_PAIR_ "imul %1, %0\n\tadd %1, %0\n\t"
#else
#define DOSE_PAIR_ "mul %0, %0, %1\n\tadd %0, %0, %1\n\t"
#endif
/* The multiplier, opaque to the compiler and loaded before a section begins:
 * loading it inside would be part of the dose. */
#define DOSE_READY(odd) uint64_t odd = 0x9e3779b97f4a7c15ull; __asm__ volatile("" : "+r"(odd))
#define DOSE(x, odd, k) __asm__ volatile(".rept " #k "\n\t" DOSE_PAIR_ ".endr" : "+r"(x) : "r"(odd))

#endif
