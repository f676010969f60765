/* Memory: two threads multiply matrices of 400 by 400 numbers that look random. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

enum { SIZE = 400, THREADS = 2 };

static double left[SIZE][SIZE], right[SIZE][SIZE], product[SIZE][SIZE];

static void *work(void *argument) {
    for (int i = (int)(intptr_t)argument; i < SIZE; i += THREADS)
        for (int j = 0; j < SIZE; j++) {
            double sum = 0;
            for (int k = 0; k < SIZE; k++) sum += left[i][k] * right[k][j];
            product[i][j] = sum;
        }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    uint32_t state = 1;
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
            state = state * 1664525u + 1013904223u;
            left[i][j] = state / 4294967296.0;
            right[j][i] = (state >> 7) / 33554432.0;
        }
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%f\n", product[3][5]);
    return 0;
}
