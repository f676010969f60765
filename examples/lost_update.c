/* A counter that loses updates.
 *
 * Wrong: `hits++` reads, adds and writes, and nothing keeps another thread out in between. Two requests
 * that read the same number count as one.
 * An ordinary run: each request takes a few nanoseconds and they come one after the other, so the sum
 * is right every time.
 * reweave: a race of the line that counts with itself.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int hits;

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
