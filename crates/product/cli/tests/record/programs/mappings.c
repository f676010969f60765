// Memory of which a part ends while the rest lives on: each case hands over a number through an
// atomic flag in the rest, and the part ends in between. Nothing else that can be seen orders them.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, STACK = 64 * PAGE };

#define UNSEEN __attribute__((no_sanitize("thread"), noinline))

static atomic_int *flag;
static int handed;
static volatile int step;

UNSEEN static void reach(int number) {
    __atomic_store_n(&step, number, __ATOMIC_RELEASE);
}

UNSEEN static void await(int number) {
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) < number) usleep(100);
}

static void *give(void *nothing) {
    handed++;
    atomic_store_explicit(flag, 1, memory_order_release);
    reach(1);
    return nothing;
}

static void *take(void *nothing) {
    await(2);
    if (atomic_load_explicit(flag, memory_order_acquire)) handed++;
    return nothing;
}

static void *idle(void *nothing) {
    return nothing;
}

static char *pages(int count) {
    return mmap(0, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void unmap_the_first(char *place) {
    munmap(place, PAGE);
}

static void unmap_the_middle(char *place) {
    munmap(place + PAGE, PAGE - 100);
}

static void unmap_nothing(char *place) {
    munmap(place, 0);
    munmap(place + 1, 3 * PAGE);
}

static void map_over(char *place) {
    mmap(place, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void shrink(char *place) {
    mremap(place, 4 * PAGE, 3 * PAGE, MREMAP_MAYMOVE);
}

static void grow_in_vain(char *place) {
    mremap(place, 3 * PAGE, 1L << 46, 0);
}

static void run_in(char *place) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, place, STACK);
    pthread_create(&thread, &attributes, idle, 0);
    pthread_join(thread, 0);
}

static void hand_over(char *place, long offset, void (*end_part)(char *)) {
    pthread_t giver, taker;
    flag = (atomic_int *)(place + offset);
    *flag = 0;
    reach(0);
    pthread_create(&taker, 0, take, 0);
    pthread_create(&giver, 0, give, 0);
    await(1);
    end_part(place);
    reach(2);
    pthread_join(giver, 0);
    pthread_join(taker, 0);
}

int main(void) {
    char *pool = aligned_alloc(PAGE, STACK + PAGE);
    hand_over(pages(2), PAGE, unmap_the_first);
    hand_over(pages(3), 2 * PAGE, unmap_the_middle);
    hand_over(pages(3), 2 * PAGE, unmap_nothing);
    hand_over(pages(2), PAGE, map_over);
    hand_over(pages(4), 2 * PAGE, shrink);
    hand_over(pages(3), 2 * PAGE, grow_in_vain);
    hand_over(pool, STACK, run_in);
    free(pool);
    return handed - 14;
}
