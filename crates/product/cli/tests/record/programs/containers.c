// Containers that a library links out of sight, under the program's own lock: whoever takes something out has it alone.
// Nothing is wrong.
#include <glib.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>

struct element {
    struct element *next, *before;
    int value;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static GQueue *queue;
static GHashTable *table;
static struct element list;
static void *tree;
static int sum;
static char kind;

static int compare(const void *first, const void *second) {
    return *(const int *)first - *(const int *)second;
}

// Puts `number` into the container.
static void insert(int *number) {
    struct element *element = (struct element *)number;
    switch (kind) {
    case 'q': g_queue_push_tail(queue, number); break;
    case 't': g_hash_table_insert(table, GINT_TO_POINTER(*number), number); break;
    case 'l': insque(element, &list); break;
    case 's': tsearch(number, &tree, compare);
    }
}

// Takes out `key`, or any.
static int *take_out(int key) {
    int *found = NULL, **leaf;
    switch (kind) {
    case 'q': return g_queue_pop_head(queue);
    case 't':
        found = g_hash_table_lookup(table, GINT_TO_POINTER(key));
        if (found) g_hash_table_remove(table, GINT_TO_POINTER(key));
        return found;
    case 'l':
        found = (int *)list.next;
        if (found) remque(found);
        return found;
    default:
        leaf = tfind(&key, &tree, compare);
        if (leaf) found = *leaf, tdelete(&key, &tree, compare);
        return found;
    }
}

static int *value(void *number) { return kind == 'l' ? &((struct element *)number)->value : number; }

static void *put(void *unused) {
    for (int i = 1; i <= 3; i++) {
        int *number = malloc(sizeof(struct element));
        *value(number) = i;
        pthread_mutex_lock(&mutex);
        insert(number);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *take(void *unused) {
    for (int i = 1; i <= 3;) {
        pthread_mutex_lock(&mutex);
        int *number = take_out(i);
        pthread_mutex_unlock(&mutex);
        if (!number) continue;
        sum += ++*value(number);
        free(number);
        i++;
    }
    return unused;
}

int main(int count, char **words) {
    kind = words[1][0];
    pthread_t putter, taker;
    queue = g_queue_new();
    table = g_hash_table_new(NULL, NULL);
    pthread_create(&putter, NULL, put, NULL);
    pthread_create(&taker, NULL, take, NULL);
    pthread_join(putter, NULL);
    pthread_join(taker, NULL);
    printf("%d\n", sum);
    return 0;
}
