// A program that replaces `operator new`, and counts.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

struct Point { int x, y; };

static std::atomic<int> made_count;
static std::atomic<int> freed_count;

void *operator new(std::size_t size) {
    made_count++;
    if (void *made = std::malloc(size)) {
        return made;
    }
    throw std::bad_alloc();
}
void operator delete(void *made) noexcept {
    freed_count++;
    std::free(made);
}
void operator delete(void *made, std::size_t) noexcept {
    freed_count++;
    std::free(made);
}

Point *point;
Point *points;

static void work() {
    point->x++;
    points[2].y++;
}

int main() {
    point = new Point;
    point->x = 1;
    points = new Point[4];
    points[2].y = 1;
    int made_before = made_count;
    std::thread first(work);
    std::thread second(work);
    first.join();
    second.join();
    int freed_before = freed_count;
    delete point;
    delete[] points;
    std::printf("%d %d\n", made_before, freed_count - freed_before);
}
