/* A semaphore that a thread may take and not post.
 *
 * Wrong: `check` keeps its permit, since it was to be the last one. If it comes first, `copy` waits for ever.
 * An ordinary run: the check begins long after the copy.
 * reweave: `copy` waits for a post that nobody makes.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static sem_t permits;
static int blocks;

static void *copy(void *nothing) {
    sem_wait(&permits);
    blocks = 8;
    sem_post(&permits);
    return nothing;
}

static void *check(void *nothing) {
    usleep(20000); /* the copy comes first */
    sem_wait(&permits);
    return nothing;
}

int main(void) {
    pthread_t copier, checker;
    sem_init(&permits, 0, 1);
    pthread_create(&copier, NULL, copy, NULL);
    pthread_create(&checker, NULL, check, NULL);
    pthread_join(copier, NULL);
    pthread_join(checker, NULL);
    printf("%d blocks\n", blocks);
    return 0;
}
