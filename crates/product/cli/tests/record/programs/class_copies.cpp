// Copies of objects that threads share, which compilers make of assignments, constructors and the library's types.
#include <array>
#include <complex>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

struct Point {
    int x, y;
};

class Account {
public:
    explicit Account(long balance = 0) : balance(balance) {}
    void add(long amount) { balance += amount; }
    long balance;
};

class Savings : public Account {
public:
    using Account::Account;
    virtual ~Savings() = default;
    int rate = 1;
};

static Point points[2];
static Account accounts[2];
static Savings savings[2];
static std::pair<int, int> pairs[2];
static std::pair<short, long> uneven[2];
static std::array<int, 2> arrays[2];
static std::array<long, 4> longer[2];
static std::complex<double> numbers[2];
static std::tuple<int, char> tuples[2];
static std::unique_ptr<std::vector<Point>> list;
static long sums[3];

static void copy(long me) {
    long sum = 0;
    for (int i = 0; i < 40; i++) {
        points[0] = points[1];
        points[1].x = i;
        points[1].y += me;
        accounts[0] = accounts[1];
        accounts[1].add(me);
        accounts[me % 2] = Account(i);
        savings[0] = savings[1];
        savings[1].add(i);
        pairs[0] = pairs[1];
        pairs[1] = std::pair<int, int>(i, static_cast<int>(me));
        uneven[0] = uneven[1];
        uneven[1].second = i;
        arrays[0] = arrays[1];
        arrays[1][i % 2] = i;
        longer[0] = longer[1];
        longer[1][i % 4] = i;
        numbers[0] = numbers[1];
        numbers[1] += std::complex<double>(i, me);
        tuples[0] = tuples[1];
        std::get<0>(tuples[1]) = i;
        (*list)[i % 3] = points[0];
        std::swap((*list)[me], (*list)[i % 3]);
        Point local = (*list)[me];
        points[me % 2] = local;
        sum += points[0].x + accounts[0].balance + savings[0].balance + pairs[0].second + uneven[0].second + arrays[0][1] +
               longer[0][2] + static_cast<long>(numbers[0].imag()) + std::get<0>(tuples[0]) + local.y;
    }
    sums[me] = sum;
}

int main() {
    list = std::make_unique<std::vector<Point>>(3);
    std::vector<std::thread> threads;
    for (long i = 0; i < 3; i++) threads.emplace_back(copy, i);
    for (auto &thread : threads) thread.join();
    list.reset();
}
