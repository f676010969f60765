// Values that are there when the thread that sets them has ended, not before.

#include <cstdio>
#include <future>
#include <memory>
#include <thread>

static int before, after, at_end;

struct AtEnd {
    ~AtEnd() { at_end++; }
};
static thread_local AtEnd variable;

int main(int count, char **) {
    std::promise<int> promise;
    std::future<int> value = promise.get_future();
    std::thread setter([&] {
        (void)&variable;
        before++;
        promise.set_value_at_thread_exit(1);
        after++;
    });
    if (count > 1) after++;
    printf("%d", value.get());
    printf(" %d %d %d\n", before, after, at_end);

    std::packaged_task<int()> task([] { return ++before; });
    std::future<int> result = task.get_future();
    std::thread worker([&] {
        task.make_ready_at_thread_exit();
        after++;
    });
    printf("%d", result.get());
    printf(" %d\n", after);

    // Nobody waits for this one: it is gone before its thread ends.
    std::thread idle([] {
        auto own = std::make_unique<std::promise<int>>();
        own->set_value_at_thread_exit(3);
    });
    setter.join(), worker.join(), idle.join();
}
