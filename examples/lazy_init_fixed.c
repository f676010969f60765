/* lazy_init.c, fixed: the table is made once, and who comes meanwhile waits until it is there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int *squares;
static pthread_once_t made_once = PTHREAD_ONCE_INIT;

static void make(void) {
    squares = malloc(10 * sizeof *squares);
    for (int i = 0; i < 10; i++)
        squares[i] = i * i;
}

static int *table(void) {
    pthread_once(&made_once, make);
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
