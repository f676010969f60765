/* A program without a fault: workers take numbers from a queue until it is closed.
 *
 * Everything shared is reached under the lock: the queue, the sum and the flag that says that no more
 * numbers come. The workers wait on a condition whose every change is made under the same lock. What
 * main prints it reads after it has joined the workers. The sum does not depend on who took what.
 * reweave: nothing found, in this run and in what other runs of the same events could do.
 */
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 3, NUMBERS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int queue[NUMBERS];
static int put, taken, is_closed, sum;

/* The next number, or 0 if none will come. */
static int next(void) {
    int number = 0;
    pthread_mutex_lock(&lock);
    while (taken == put && !is_closed)
        pthread_cond_wait(&changed, &lock);
    if (taken < put)
        number = queue[taken++];
    pthread_mutex_unlock(&lock);
    return number;
}

static void *work(void *nothing) {
    for (int number; (number = next()) != 0;) {
        int square = number * number;
        pthread_mutex_lock(&lock);
        sum += square;
        pthread_mutex_unlock(&lock);
    }
    return nothing;
}

int main(void) {
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    for (int i = 1; i <= NUMBERS; i++) {
        pthread_mutex_lock(&lock);
        queue[put++] = i;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    is_closed = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    printf("sum of squares %d\n", sum);
    return 0;
}
