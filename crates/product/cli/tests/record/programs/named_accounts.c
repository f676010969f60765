// Two allocated accounts whose locks are taken in both orders.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct account {
    long number;
    pthread_mutex_t lock;
    long balance;
};

static struct account *open_account(long number) {
    struct account *account = malloc(sizeof(struct account));
    account->number = number;
    account->balance = 100;
    pthread_mutex_init(&account->lock, 0);
    return account;
}

static struct account *first, *second;

static void transfer(struct account *from, struct account *to) {
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->balance--;
    to->balance++;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *forth(void *unused) {
    transfer(first, second);
    return unused;
}

static void *back(void *unused) {
    usleep(20000);
    transfer(second, first);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    first = open_account(1);
    second = open_account(2);
    pthread_create(&threads[0], 0, forth, 0);
    pthread_create(&threads[1], 0, back, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
