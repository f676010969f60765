/* A counted reference whose count is relaxed.
 *
 * Wrong: `drop` counts down with a relaxed order. Whoever counts to zero frees the page, but what the other thread did
 * to it need not be over by then, for the compiler and for weaker processors.
 * An ordinary run: on x86-64 the count orders what comes before it.
 * reweave: nothing orders the free and the other thread's use.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct page {
    atomic_int references;
    int lines[2];
};

static struct page *page;

static void drop(struct page *it) {
    if (atomic_fetch_sub_explicit(&it->references, 1, memory_order_relaxed) == 1)
        free(it);
}

static void *write_line(void *number) {
    page->lines[*(int *)number] = 1;
    drop(page);
    return NULL;
}

int main(void) {
    int numbers[] = {0, 1};
    pthread_t writers[2];
    page = calloc(1, sizeof *page);
    atomic_init(&page->references, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&writers[i], NULL, write_line, &numbers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    puts("written and gone");
    return 0;
}
