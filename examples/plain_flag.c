/* A plain variable used to hand data over.
 *
 * Wrong: `ready` is written by one thread and read by another, and neither is atomic. `volatile` keeps
 * the compiler from caching it, and orders nothing: the reader may see the flag before the answer.
 * An ordinary run: on this processor stores become visible in order, so the answer is there.
 * reweave: a race between the line that sets the flag and the line that waits for it. That no race is
 * shown on `answer` is right as well: a reader that has seen the flag comes after the writer.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int answer;
static volatile int ready;

static void *compute(void *nothing) {
    usleep(10000);
    answer = 42;
    ready = 1;
    return nothing;
}

static void *print(void *nothing) {
    while (!ready)
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
