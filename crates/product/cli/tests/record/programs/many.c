// Many threads: the first argument how many at once, the second how many rounds of them.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_barrier_t all;
int x;

static void *add(void *unused) {
    pthread_barrier_wait(&all);
    pthread_mutex_lock(&m);
    x++;
    pthread_mutex_unlock(&m);
    return unused;
}

int main(int count, char **arguments) {
    int width = count > 1 ? atoi(arguments[1]) : 4, rounds = count > 2 ? atoi(arguments[2]) : 1;
    pthread_t *threads = calloc(width, sizeof *threads);
    pthread_barrier_init(&all, 0, width);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < width; i++) {
            if (pthread_create(&threads[i], 0, add, 0)) return 1;
        }
        for (int i = 0; i < width; i++) pthread_join(threads[i], 0);
    }
    printf("%d\n", x);
    return 0;
}
