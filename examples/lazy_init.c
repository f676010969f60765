/* Something made at first use, by whoever comes first.
 *
 * Wrong: `table` looks whether the squares are there and makes them if not, without a lock. Two threads
 * that come first together both make them, and one table is lost or used half made.
 * An ordinary run: the first thread has made the table by the time the second one asks.
 * reweave: a race between the line that looks and the line that stores the pointer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int *squares;

static int *table(void) {
    if (squares == NULL) {
        int *made = malloc(10 * sizeof *made);
        for (int i = 0; i < 10; i++)
            made[i] = i * i;
        squares = made;
    }
    return squares;
}

static void *early(void *result) {
    *(int *)result = table()[3];
    return NULL;
}

static void *late(void *result) {
    usleep(20000);
    *(int *)result = table()[4];
    return NULL;
}

int main(void) {
    int nine, sixteen;
    pthread_t one, two;
    pthread_create(&one, NULL, early, &nine);
    pthread_create(&two, NULL, late, &sixteen);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    printf("%d + %d\n", nine, sixteen);
    free(squares);
    return 0;
}
