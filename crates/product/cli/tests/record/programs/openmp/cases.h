// The cases of a file: `FILE CASE THREADS` runs one. What starts with `race_` has a race, what
// starts with `ok_` has none.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 8
static int x, y, a[N + 2];

// Uses a value, so that it is read.
static inline void use(int value) { __asm__ volatile("" : : "r"(value)); }

struct Case {
    const char *name;
    void (*run)(void);
};
#define CASE(name) {#name, name}

#define RUN(...)                                                              \
    static const struct Case CASES[] = {__VA_ARGS__};                         \
    int main(int count, char **words) {                                       \
        if (count > 2)                                                        \
            omp_set_num_threads(atoi(words[2]));                              \
        for (unsigned i = 0; i < sizeof CASES / sizeof *CASES; i++) {         \
            if (count < 2)                                                    \
                puts(CASES[i].name);                                          \
            else if (!strcmp(CASES[i].name, words[1]))                        \
                CASES[i].run();                                               \
        }                                                                     \
        use(x + y + a[0]);                                                    \
        return 0;                                                             \
    }
