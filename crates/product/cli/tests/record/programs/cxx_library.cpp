// What containers, strings and streams of the C++ library keep, shared under a lock or, if a second argument is given,
// without. The library changes links of nodes, texts and buffers in functions of its own.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <iostream>

static std::mutex lock;
static bool is_faulty;

// Locks unless the fault is wanted.
struct Guard {
    bool holds = !is_faulty;
    Guard() { if (holds) lock.lock(); }
    ~Guard() { if (holds) lock.unlock(); }
};

template <class First, class Second>
static void both(First first, Second second) {
    std::thread one(first), two([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        second();
    });
    one.join();
    two.join();
}

static int spliced() {
    std::list<int> queue, made{1, 2, 3}, got;
    both([&] { Guard guard; queue.splice(queue.end(), made); },
         [&] { Guard guard; got.splice(got.end(), queue); });
    int sum = 0;
    for (int value : got) sum += value;
    for (int value : queue) sum += value;
    return sum;
}

static int pushed() {
    std::list<int> list;
    both([&] { Guard guard; list.push_back(1); }, [&] { Guard guard; list.push_front(2); });
    return list.front();
}

static int mapped() {
    std::map<int, int> map;
    for (int i = 0; i < 7; i++) map[i] = i;
    both([&] { Guard guard; for (int i = 7; i < 12; i++) map[i] = i; },
         [&] {
             Guard guard;
             map.erase(3);
             auto found = map.find(9);
             if (found != map.end()) found->second++;
         });
    int sum = 0;
    for (auto &entry : map) sum += entry.second;
    return sum;
}

static int walked() {
    std::set<int> set{1, 2, 3, 4};
    int sum = 0;
    both([&] { Guard guard; for (int value : set) sum += value; }, [&] { Guard guard; set.erase(2); });
    return sum;
}

static int texted() {
    std::string text = "a";
    size_t sum = 0;
    both([&] { Guard guard; text += "b and a longer text that needs the heap"; },
         [&] { Guard guard; sum = text.size() + text.find("and"); });
    return static_cast<int>(sum);
}

static int streamed() {
    std::stringstream stream;
    int number = 0;
    both([&] { Guard guard; stream << "one " << 2 << " three "; },
         [&] {
             Guard guard;
             std::string word;
             stream >> word >> number;
         });
    return number;
}

static int lined() {
    std::istringstream in("first line\nsecond line that is longer than fifteen\n");
    std::string line;
    int seen = 0;
    both([&] { Guard guard; std::getline(in, line); std::getline(in, line); },
         [&] { Guard guard; seen = line.empty() ? 0 : line[0]; });
    return seen;
}

// A node is published by an atomic and then belongs to the other.
static int published() {
    std::list<std::string> *made = nullptr;
    std::atomic<int> ready{0};
    int sum = 0;
    auto make = [&] {
        made = new std::list<std::string>;
        made->push_back("one string that is long enough for the heap");
        made->push_back("two");
        ready.store(1, is_faulty ? std::memory_order_relaxed : std::memory_order_release);
    };
    auto take = [&] {
        if (!ready.load(is_faulty ? std::memory_order_relaxed : std::memory_order_acquire)) return;
        for (auto &text : *made) sum += static_cast<int>(text.size());
        delete made;
    };
    both(make, take);
    return sum;
}

static int printed() {
    both([] { std::cout << "one " << 1 << std::endl; }, [] { std::cout << "two " << 2 << std::endl; });
    return 0;
}

int main(int count, char **words) {
    is_faulty = count > 2;
    struct {
        const char *name;
        int (*run)();
    } const all[] = {{"spliced", spliced}, {"pushed", pushed},     {"mapped", mapped},
                     {"walked", walked},   {"texted", texted},     {"streamed", streamed},
                     {"lined", lined},     {"published", published}, {"printed", printed}};
    for (auto &one : all)
        if (!std::strcmp(words[1], one.name)) std::printf("%s %d\n", one.name, one.run());
}
