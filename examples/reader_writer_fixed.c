/* reader_writer.c, fixed: the count is atomic, so readers may count together. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int prices[3] = {5, 7, 9};
static atomic_int look_ups;

static int look_up(int article) {
    pthread_rwlock_rdlock(&lock);
    look_ups++;
    int price = prices[article];
    pthread_rwlock_unlock(&lock);
    return price;
}

static void raise(int article, int by) {
    pthread_rwlock_wrlock(&lock);
    prices[article] += by;
    pthread_rwlock_unlock(&lock);
}

static void *sell(void *sum) {
    *(int *)sum = look_up(0) + look_up(2);
    return NULL;
}

static void *offer(void *sum) {
    usleep(20000);
    *(int *)sum = look_up(1);
    return NULL;
}

int main(void) {
    int sold, offered;
    pthread_t seller, agent;
    raise(1, 3);
    pthread_create(&seller, NULL, sell, &sold);
    pthread_create(&agent, NULL, offer, &offered);
    pthread_join(seller, NULL);
    pthread_join(agent, NULL);
    printf("sold for %d, offered for %d, %d look-ups\n", sold, offered, look_ups);
    return 0;
}
