// Memory that is copied, set, reused, moved, packed; variables of threads and of stacks.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct bits {
    unsigned low : 3;
    unsigned high : 5;
};
struct __attribute__((packed)) odd {
    char first;
    uint32_t second;
    uint64_t third;
};

char text[64], copied[64];
struct bits bits;
struct odd odd;
_Thread_local int own;
int *handed;

static void *use(void *block) {
    int *numbers = block;
    own++;
    numbers[1] = numbers[0] + own;
    memcpy(copied, text, 32);
    memmove(copied + 1, copied, 16);
    memset(text, 0, sizeof text);
    bits.high = 9;
    odd.second++;
    odd.third++;
    return 0;
}

static void beside(void *block) {
    pthread_t thread;
    pthread_create(&thread, 0, use, block);
    pthread_join(thread, 0);
}

int main(void) {
    int *block = malloc(2 * sizeof *block);
    int *again;
    own = 5;
    strcpy(text, "as it was");
    bits.low = 5;
    block[0] = 1;
    beside(block);
    printf("%d", block[1]);
    block = realloc(block, 4096);
    block[0] = 10;
    beside(block);
    printf(" %d", block[1]);
    free(block);
    again = malloc(4096);
    again[0] = 20;
    beside(again);
    printf(" %d", again[1]);
    free(again);
    again = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    again[0] = 30;
    beside(again);
    printf(" %d", again[1]);
    munmap(again, 8192);
    printf(" %s %d %d %d %d\n", copied, bits.low, bits.high, odd.second, (int)odd.third);
    return own - 5;
}
