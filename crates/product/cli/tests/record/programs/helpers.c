/* Two faults behind the lines of one helper, for each argument: it is handed one thing and then another. */
#include <pthread.h>
#include <reweave.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    _Atomic int is_open;
};

struct account {
    pthread_mutex_t lock;
    long balance;
};

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER, d = PTHREAD_MUTEX_INITIALIZER;
static struct gate in = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static struct gate out = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static struct account savings = {PTHREAD_MUTEX_INITIALIZER, 1}, household = {PTHREAD_MUTEX_INITIALIZER, 1};
static struct node { long count; } *node;
static struct leaf { long count; } *leaf;
static sem_t red, green;

static void pause_a_little(void) {
    usleep(20000);
}

/* Locks in opposite orders. */
static void both(pthread_mutex_t *outer, pthread_mutex_t *inner) {
    pthread_mutex_lock(outer);
    pthread_mutex_lock(inner);
    pthread_mutex_unlock(inner);
    pthread_mutex_unlock(outer);
}

static void *forth(void *p) {
    both(&a, &b);
    both(&c, &d);
    return p;
}

static void *back(void *p) {
    pause_a_little();
    both(&b, &a);
    both(&d, &c);
    return p;
}

/* What is read depends on who comes first. */
static long get(struct account *account) {
    pthread_mutex_lock(&account->lock);
    long seen = account->balance;
    pthread_mutex_unlock(&account->lock);
    return seen;
}

static void set(struct account *account, long amount) {
    pthread_mutex_lock(&account->lock);
    account->balance = amount;
    pthread_mutex_unlock(&account->lock);
}

static void *sets(void *p) {
    pause_a_little();
    set(&savings, 5);
    set(&household, 7);
    return p;
}

static void *gets(void *p) {
    get(&savings);
    get(&household);
    return p;
}

/* Blocks that are not atomic. */
static void pay(struct account *account, long amount) {
    reweave_atomic_begin("pay");
    set(account, get(account) + amount);
    reweave_atomic_end();
}

static void *pays(void *p) {
    pay(&savings, 5);
    pay(&household, 6);
    return p;
}

/* Notifies that are lost. */
static void *waits(void *p) {
    struct gate *gate = p;
    pthread_mutex_lock(&gate->lock);
    while (!gate->is_open)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return p;
}

static void *opens(void *p) {
    struct gate *gate = p;
    pause_a_little();
    gate->is_open = 1;
    pthread_cond_signal(&gate->opened);
    return p;
}

/* Locks and tokens that are kept. */
static void *locks(void *p) {
    pthread_mutex_lock(p);
    pthread_mutex_unlock(p);
    return p;
}

static void *keeps_lock(void *p) {
    pause_a_little();
    pthread_mutex_lock(p);
    return p;
}

static void *takes(void *p) {
    sem_wait(p);
    sem_post(p);
    return p;
}

static void *keeps_token(void *p) {
    pause_a_little();
    sem_wait(p);
    return p;
}

/* Lives that end too early. */
static void count(long *p) {
    pthread_mutex_lock(&a);
    ++*p;
    pthread_mutex_unlock(&a);
}

static void drop(void *p) {
    pthread_mutex_lock(&a);
    free(p);
    pthread_mutex_unlock(&a);
}

static void *counts(void *p) {
    count(&node->count);
    count(&leaf->count);
    return p;
}

static void *drops(void *p) {
    pause_a_little();
    drop(node);
    drop(leaf);
    return p;
}

static void *uses(void *p) {
    locks(&a);
    locks(&b);
    return p;
}

static void destroy(pthread_mutex_t *lock) {
    pthread_mutex_destroy(lock);
}

static void *destroys(void *p) {
    pause_a_little();
    destroy(&a);
    destroy(&b);
    return p;
}

typedef void *work(void *);

/* Runs one thread of each, for what each of both is handed. */
static void run(work *one, work *other, void *first, void *second) {
    pthread_t threads[4];
    for (int at = 0; at < 4; at++)
        pthread_create(&threads[at], NULL, at % 2 ? other : one, at < 2 ? first : second);
    for (int at = 0; at < 4; at++)
        pthread_join(threads[at], NULL);
}

static void run_both(work *one, work *other) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, one, NULL);
    pthread_create(&threads[1], NULL, other, NULL);
    for (int at = 0; at < 2; at++)
        pthread_join(threads[at], NULL);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    node = calloc(1, sizeof *node);
    leaf = calloc(1, sizeof *leaf);
    sem_init(&red, 0, 1);
    sem_init(&green, 0, 1);
    if (!strcmp(way, "orders"))
        run_both(forth, back);
    else if (!strcmp(way, "reads"))
        run_both(gets, sets);
    else if (!strcmp(way, "blocks"))
        run_both(pays, sets);
    else if (!strcmp(way, "gates"))
        run(waits, opens, &in, &out);
    else if (!strcmp(way, "locks"))
        run(locks, keeps_lock, &a, &b);
    else if (!strcmp(way, "tokens"))
        run(takes, keeps_token, &red, &green);
    else if (!strcmp(way, "memory"))
        run_both(counts, drops);
    else if (!strcmp(way, "handles"))
        run_both(uses, destroys);
    return 0;
}
