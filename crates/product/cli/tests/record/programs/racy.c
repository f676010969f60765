// Threads that write to the same variables without any order: of all sizes, wide and narrow at the
// same place, plain and atomic. The argument is how many rounds.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

volatile uint8_t bytes[8];
volatile uint16_t halves[4];
volatile uint32_t words[8];
volatile uint64_t longs[8];
union {
    volatile uint64_t whole;
    volatile uint32_t parts[2];
    volatile uint8_t bytes[8];
} mixed;
_Atomic uint32_t counter;
volatile int turn;
static long rounds;

static void *work(void *argument) {
    unsigned own = (unsigned)(long)argument;
    for (long i = 0; i < rounds; i++) {
        unsigned at = (own + i) & 7;
        words[0]++;
        bytes[at]++;
        halves[at & 3] += own;
        words[at] = words[at ^ 1] + 1;
        longs[at] += words[at];
        mixed.whole += 0x100000001;
        mixed.parts[at & 1] = own;
        mixed.bytes[at]++;
        atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
        if (atomic_load(&counter) % 7 == 0) *(volatile uint32_t *)&counter += 7;
        if (turn != (int)own) turn = own;
    }
    return 0;
}

int main(int count, char **arguments) {
    pthread_t threads[4];
    rounds = count > 1 ? atol(arguments[1]) : 1000;
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)(i + 1));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
