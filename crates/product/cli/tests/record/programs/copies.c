/* Copies of structures that threads share. gcc announces each as a write and a read, then loads and stores. */
#include <pthread.h>
#include <stdlib.h>

struct byte { char v; };
struct word { int v; };
struct pair { int v, w; };
struct wide { long v, w; };
struct many { long v[5]; };
struct __attribute__((packed)) odd { char c; int v; };

static struct byte bytes[2];
static struct word words[2];
static struct pair pairs[2];
static struct wide wides[2];
static struct many manies[2];
static struct odd odds[2];
static struct word *block;
static long sums[3];

static void *copy(void *number) {
    long me = (long)number, sum = 0;
    for (int i = 0; i < 60; i++) {
        bytes[0] = bytes[1];
        bytes[1].v = i;
        words[0] = words[1];
        words[1].v = 4 * i + me;
        pairs[i % 2] = pairs[1 - i % 2];
        pairs[1].w += me;
        wides[0] = wides[1];
        wides[1].v = wides[0].w + i;
        wides[1].w = i;
        manies[0] = manies[1];
        manies[1].v[i % 5] = me;
        odds[0] = odds[1];
        odds[1].v = i;
        block[i % 4] = words[0];
        words[0] = block[me];
        words[i % 2] = words[me % 2];
        sum += bytes[0].v + words[0].v + pairs[0].v + pairs[1].w + wides[0].v + wides[0].w + odds[0].v + manies[0].v[1];
    }
    sums[me] = sum;
    /* What was written last is freed before anything else is recorded. */
    struct word *last = malloc(sizeof *last);
    last->v = me;
    free(last);
    return 0;
}

int main(void) {
    pthread_t threads[3];
    block = calloc(4, sizeof *block);
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, copy, (void *)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    free(block);
    return 0;
}
