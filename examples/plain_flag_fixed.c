/* plain_flag.c, fixed: the flag is atomic, its store a release and its load an acquire. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static int answer;
static atomic_int ready;

static void *compute(void *nothing) {
    usleep(10000);
    answer = 42;
    atomic_store_explicit(&ready, 1, memory_order_release);
    return nothing;
}

static void *print(void *nothing) {
    while (!atomic_load_explicit(&ready, memory_order_acquire))
        usleep(3000);
    printf("the answer is %d\n", answer);
    return nothing;
}

int main(void) {
    pthread_t writer, reader;
    pthread_create(&writer, NULL, compute, NULL);
    pthread_create(&reader, NULL, print, NULL);
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    return 0;
}
