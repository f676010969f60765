/* nondeterministic.c, fixed: each thread keeps its part, and main combines them when both are there. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int parts[2];

static void *quick(void *nothing) {
    parts[0] = 3;
    return nothing;
}

static void *slow(void *nothing) {
    usleep(20000);
    parts[1] = 4;
    return nothing;
}

int main(void) {
    pthread_t one, two;
    pthread_create(&one, NULL, quick, NULL);
    pthread_create(&two, NULL, slow, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("result %d\n", parts[0] * 10 + parts[1]);
    return 0;
}
