/* lost_update.c, fixed: the counter is atomic. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int hits;

static void *serve(void *wait) {
    usleep(*(int *)wait);
    hits++;
    return NULL;
}

int main(void) {
    int waits[3] = {0, 10000, 20000};
    pthread_t requests[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&requests[i], NULL, serve, &waits[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(requests[i], NULL);
    printf("%d hits\n", hits);
    return 0;
}
