/* relaxed_publish.c, fixed: the store releases what came before it, and the load acquires it. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static int answer;
static atomic_int ready;

static void *publish(void *nothing) {
    answer = 42;
    atomic_store_explicit(&ready, 1, memory_order_release);
    return nothing;
}

static void *read_it(void *nothing) {
    while (!atomic_load_explicit(&ready, memory_order_acquire))
        sched_yield();
    printf("the answer is %d\n", answer);
    return nothing;
}

int main(void) {
    pthread_t publisher, reader;
    pthread_create(&publisher, NULL, publish, NULL);
    pthread_create(&reader, NULL, read_it, NULL);
    pthread_join(publisher, NULL);
    pthread_join(reader, NULL);
    return 0;
}
