// Structs in arrays, nested members, unions and bit fields of globals and of allocated memory.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct item {
    int id;
    struct item *next;
    long refs;
    union {
        int small;
        double large;
    } value;
    unsigned ready : 1, done : 1;
} Item;

struct entry {
    char key[16];
    Item *head;
    long hits;
};

static struct {
    pthread_mutex_t lock;
    struct entry entries[4];
    struct {
        long reads, writes;
    } counts;
    int grid[2][3];
} cache;

struct job {
    pthread_mutex_t mutex;
    int *results;
    Item *item;
};

static void *checked_alloc(size_t size) {
    void *memory = malloc(size);
    if (!memory)
        abort();
    return memory;
}

static Item *make_item(int id) {
    Item *item = checked_alloc(sizeof *item);
    memset(item, 0, sizeof *item);
    item->id = id;
    return item;
}

static void *work(void *argument) {
    struct job *job = argument;
    pthread_mutex_lock(&job->mutex);
    job->results[2]++;
    pthread_mutex_unlock(&job->mutex);
    pthread_mutex_lock(&cache.lock);
    cache.entries[3].head = job->item;
    pthread_mutex_unlock(&cache.lock);
    cache.entries[1].hits++;
    cache.counts.writes++;
    cache.grid[1][2]++;
    job->item->refs++;
    job->item->value.large = 1.5;
    job->item->ready = 1;
    job->results[5]++;
    return 0;
}

int main(void) {
    struct job *job = calloc(1, sizeof(struct job));
    pthread_t threads[2];
    pthread_mutex_init(&job->mutex, 0);
    job->item = make_item(1);
    job->results = malloc(8 * sizeof(int));
    memset(job->results, 0, 8 * sizeof(int));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, job);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}
