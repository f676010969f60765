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

static int compare(const void *first, const void *second) {
    return *(const int *)first - *(const int *)second;
}

static void *put(void *unused) {
    for (int i = 1; i <= 3; i++) {
        int *number = malloc(sizeof *number), *entry = malloc(sizeof *entry), *leaf = malloc(sizeof *leaf);
        struct element *element = malloc(sizeof *element);
        *number = *entry = *leaf = element->value = i;
        pthread_mutex_lock(&mutex);
        g_queue_push_tail(queue, number);
        g_hash_table_insert(table, GINT_TO_POINTER(i), entry);
        insque(element, &list);
        tsearch(leaf, &tree, compare);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *take(void *unused) {
    for (int i = 1; i <= 3;) {
        pthread_mutex_lock(&mutex);
        int *number = g_queue_pop_head(queue);
        int *entry = g_hash_table_lookup(table, GINT_TO_POINTER(i));
        if (entry) g_hash_table_remove(table, GINT_TO_POINTER(i));
        struct element *element = list.next;
        if (element) remque(element);
        int **leaf = tfind(&i, &tree, compare), *found = leaf ? *leaf : NULL;
        if (leaf) tdelete(&i, &tree, compare);
        pthread_mutex_unlock(&mutex);
        if (!number) continue;
        sum += ++*number + ++*entry + ++element->value + ++*found;
        free(number);
        free(entry);
        free(element);
        free(found);
        i++;
    }
    return unused;
}

int main(void) {
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
