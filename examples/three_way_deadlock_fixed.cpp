// three_way_deadlock.cpp, fixed: both tools are taken at once. `std::lock` lets the first one go again
// if it cannot have the second.
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

struct Tool {
    std::mutex lock;
    int uses = 0;
};

static Tool knife, board, pan;

static void cook(Tool &left, Tool &right, int turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * turn));
    std::lock(left.lock, right.lock);
    left.uses++;
    right.uses++;
    right.lock.unlock();
    left.lock.unlock();
}

int main() {
    std::thread first(cook, std::ref(knife), std::ref(board), 0);
    std::thread second(cook, std::ref(board), std::ref(pan), 1);
    std::thread third(cook, std::ref(pan), std::ref(knife), 2);
    first.join();
    second.join();
    third.join();
    std::printf("knife %d, board %d, pan %d\n", knife.uses, board.uses, pan.uses);
}
