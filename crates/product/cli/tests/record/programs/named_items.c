// Blocks from the program's own wrappers of `malloc`, and what statements say of blocks.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct item { pthread_mutex_t lock; int refs; int values[5]; };
struct pair { int left, right; };
struct odd { double a, b, c; };
struct message { int length; int kind; char text[]; };
struct list { struct item *first; struct pair *pairs; int length; };
union value { int small; double large; };
struct node { struct node *next; union value value; };

struct item *item;
struct item **items;
struct pair *pair;
struct odd *odd;
struct message *message;
struct list *list;
struct node *node;
int *numbers;

static void *xmalloc(size_t size) {
    void *made = malloc(size);
    if (!made) {
        abort();
    }
    return made;
}

static void *zalloc(size_t size) {
    return memset(xmalloc(size), 0, size);
}

static struct item *item_new(void) {
    struct item *made =
        zalloc(sizeof(*made));
    pthread_mutex_init(&made->lock, NULL);
    return made;
}

#define NEW(type) ((type *)zalloc(sizeof(type)))

static void keep(void *first, void *second) {
    pair = first;
    odd = second;
}

static void fill(size_t many) {
    item = item_new();
    items = malloc(many * sizeof(struct item *));
    for (size_t at = 0; at < many; at++)
        items[at] = zalloc(sizeof **items);
    message = xmalloc(sizeof *message + many * 8);
    message->text[9] = 1;
    keep(xmalloc(sizeof(struct pair)), xmalloc(sizeof(struct odd)));
    list = NEW(struct list);
    list->pairs = calloc(many, 8);
    numbers = realloc(xmalloc(8), many * 4);
    numbers[3] = 1;
    node = xmalloc(sizeof *node);
    node->value.large = 1;
}

static void *work(void *argument) {
    struct item *first = argument ? item : items[1], *second = argument ? items[1] : item;
    if (argument) {
        usleep(20000);
    }
    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(&second->lock);
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
    item->values[1]++;
    items[2]->refs++;
    message->text[9]++;
    pair->right++;
    odd->c++;
    list->length++;
    list->pairs[1].left++;
    numbers[3]++;
    node->value.large++;
    return NULL;
}

int main(int count, char **words) {
    (void)words;
    fill(3 + (size_t)count);
    pthread_t first, second;
    pthread_create(&first, NULL, work, NULL);
    pthread_create(&second, NULL, work, &first);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
