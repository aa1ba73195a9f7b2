/* A span of known length: n pairs of dependent instructions. */
#define TEXT_(n) #n
#define DOSE(n, x) \
    __asm__ volatile(".rept " TEXT_(n) "\n\timulq $3, %0, %0\n\taddq $1, %0\n\t.endr" : "+r"(x))
