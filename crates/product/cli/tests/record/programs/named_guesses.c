// Blocks whose types a statement does not say, or says in two ways: they are called by their lines.
#include <pthread.h>
#include <stdlib.h>

struct pair { int left, right; };
struct twin { int first, second; };
struct row { int cells[4]; };

struct twin *twin;
struct pair *pair;
struct row **rows;
struct row *row;
void *raw;
void *cast;

// The function knows a pair, but what it allocates is something else.
static void prepare(struct pair *model) {
    raw = malloc(2 * 4);
    ((struct twin *)raw)->second = model->right;
}

static void fill(size_t many) {
    pair = malloc(sizeof(struct pair)), twin = malloc(sizeof(struct twin));
    twin->second = 1;
    pair->right = 1;
    prepare(pair);
    // Forty bytes are five pointers, and no row.
    rows = malloc(many * 10);
    rows[1] = row = malloc(many * 4);
    row->cells[2] = 1;
    cast = malloc(many * 6);
    ((double *)cast)[1] = 1;
}

static void *work(void *unused) {
    pair->right++;
    ((struct twin *)raw)->second++;
    row->cells[2]++;
    ((double *)cast)[1]++;
    return unused;
}

int main(int count, char **words) {
    (void)words;
    fill(3 + (size_t)count);
    pthread_t first, second;
    pthread_create(&first, NULL, work, NULL);
    pthread_create(&second, NULL, work, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
