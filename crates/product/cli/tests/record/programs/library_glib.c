// What GLib orders; with a word, what it does not.
#include <glib.h>
#include <stdio.h>

static GMutex mutex, other;
static GCond condition;
static GRWLock lock;
static GOnce once = G_ONCE_INIT;
static GAsyncQueue *queue;
static int count, ready, table, read_sum, made, idle_result, racy;
static gsize initialised;
static const char *fault;

static gpointer make(gpointer nothing) {
    made = 7;
    return nothing;
}

static gpointer work(gpointer number) {
    int *piece = g_new(int, 1);
    for (int time = 0; time < 5; time++) {
        g_mutex_lock(&mutex);
        count++;
        g_mutex_unlock(&mutex);
        g_rw_lock_writer_lock(&lock);
        table++;
        g_rw_lock_writer_unlock(&lock);
    }
    g_rw_lock_reader_lock(&lock);
    *piece = GPOINTER_TO_INT(number) + 0 * table;
    g_rw_lock_reader_unlock(&lock);
    g_once(&once, make, NULL);
    *piece += made;
    if (g_once_init_enter(&initialised)) {
        read_sum = 1;
        g_once_init_leave(&initialised, 1);
    }
    *piece += read_sum;
    g_async_queue_push(queue, piece);
    if (fault && *fault == 'r') racy++;
    g_mutex_lock(&mutex);
    ready++;
    g_cond_signal(&condition);
    g_mutex_unlock(&mutex);
    return NULL;
}

#define UNSEEN __attribute__((no_sanitize("thread"), noinline))

static int done;

UNSEEN static void finish(void) {
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

UNSEEN static void await(void) {
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) g_usleep(100);
}

static gpointer crosswise(gpointer is_second) {
    GMutex *locks[] = {&mutex, &other};
    int first = is_second != NULL;
    g_mutex_lock(locks[first]);
    g_mutex_lock(locks[1 - first]);
    g_mutex_unlock(locks[1 - first]);
    g_mutex_unlock(locks[first]);
    finish();
    return NULL;
}

static void in_pool(gpointer place, gpointer nothing) {
    (void)nothing;
    *(int *)place += 1;
}

static gboolean in_loop(gpointer loop) {
    idle_result = idle_result * 2;
    g_main_loop_quit(loop);
    return FALSE;
}

static gpointer send(gpointer loop) {
    idle_result = 21;
    g_idle_add(in_loop, loop);
    return NULL;
}

int main(int words_count, char **words) {
    static int places[4];
    GThread *threads[3];
    GThreadPool *pool;
    GMainLoop *loop;
    int sum = 0;
    fault = words_count > 1 ? words[1] : NULL;
    queue = g_async_queue_new();
    if (fault && *fault == 'd') {
        threads[0] = g_thread_new("crosswise", crosswise, NULL);
        await();
        threads[1] = g_thread_new("crosswise", crosswise, &other);
        for (int at = 0; at < 2; at++) g_thread_join(threads[at]);
        return 0;
    }
    for (int at = 0; at < 3; at++) threads[at] = g_thread_new("work", work, GINT_TO_POINTER(at));
    for (int at = 0; at < 3; at++) {
        int *piece = g_async_queue_pop(queue);
        sum += *piece;
        g_free(piece);
    }
    g_mutex_lock(&mutex);
    while (ready < 3) g_cond_wait(&condition, &mutex);
    g_mutex_unlock(&mutex);
    for (int at = 0; at < 3; at++) g_thread_join(threads[at]);
    pool = g_thread_pool_new(in_pool, NULL, 2, FALSE, NULL);
    for (int at = 0; at < 4; at++) {
        places[at] = at;
        g_thread_pool_push(pool, &places[at], NULL);
    }
    g_thread_pool_free(pool, FALSE, TRUE);
    for (int at = 0; at < 4; at++) sum += places[at];
    loop = g_main_loop_new(NULL, FALSE);
    threads[0] = g_thread_new("send", send, loop);
    g_main_loop_run(loop);
    sum += idle_result;
    g_thread_join(threads[0]);
    printf("%d %d %d\n", count, table, sum);
    return 0;
}
