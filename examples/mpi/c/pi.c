/* Pi computes π with as many MPI processes as there are: each takes every size-th
 * strip of the area under 4/(1+x²) between 0 and 1, the sum is reduced, and each
 * process has one word with each other one, so that all pairs speak to each other.
 * It fails if a word or the sum is wrong. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double area(long strips, int rank, int size)
{
	double width = 1.0 / strips, sum = 0;
	for (long i = rank; i < strips; i += size) {
		double x = width * (i + 0.5);
		sum += 4.0 / (1.0 + x * x);
	}
	return sum * width;
}

/* words returns how many of the other processes answered with what they should. */
static int words(int rank, int size)
{
	int right = 0;
	for (int step = 1; step < size; step++) {
		int to = (rank + step) % size, from = (rank + size - step) % size;
		int said = 1000 * rank + to, heard = -1;
		MPI_Sendrecv(&said, 1, MPI_INT, to, 0, &heard, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		right += heard == 1000 * from + rank;
	}
	return right;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	int rank, size, right, all = 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	long strips = argc > 1 ? atol(argv[1]) : 1000000;
	if (strips < 1) {
		if (rank == 0)
			fprintf(stderr, "pi: strips %s: want a number from 1 on\n", argv[1]);
		MPI_Finalize();
		return 2;
	}
	double part = area(strips, rank, size), pi = 0;
	MPI_Allreduce(&part, &pi, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	right = words(rank, size);
	MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

	/* the midpoint rule is off by at most width² · max|f″| / 24 = width² / 3, and rounding */
	double off = fabs(pi - acos(-1.0)), bound = 1.0 / strips / strips / 3 + 1e-12;
	int failed = off > bound || all != size * (size - 1);
	if (rank == 0)
		printf("pi %.10f, off by %.1e (at most %.1e), %d processes, %d of %d words right\n",
		       pi, off, bound, size, all, size * (size - 1));
	MPI_Finalize();
	return failed;
}
