"""The paper's Figure 3, made only from a campaign's runs. Change it as you like; it uses nothing else of this project.

python analysis/figures/example_figure3.py results/x/runs.csv figure3.png      (or results/x/report/runs.parquet)
"""

import sys

import matplotlib.pyplot as plt
import pandas as pd

source, target = sys.argv[1:]
runs = pd.read_parquet(source) if source.endswith(".parquet") else pd.read_csv(source)
if "browser" in runs and runs["browser"].nunique() > 1:  # compare loads within one browser only
    runs["network"] = runs["network"].str.partition("@")[0] + "@" + runs["browser"]
means = runs[runs["valid"]].groupby(["network", "site", "protocol"])[["fvc", "si", "vc85", "plt"]].mean()
stock = means.xs("tcp", level="protocol")  # the reference of all comparisons
change = (means - stock) / stock

networks = list(runs["network"].unique())
figure, grid = plt.subplots(len(networks), 4, figsize=(9, 2.4 * len(networks)), sharey=True, squeeze=False)
for row, network in zip(grid, networks, strict=True):
    for axes, metric in zip(row, change.columns, strict=True):
        for protocol, values in change.loc[network, metric].dropna().groupby("protocol"):
            if protocol != "tcp":
                axes.ecdf(values, label=protocol)
        axes.set(title=f"{network} {metric}", xlabel="change from tcp")
        axes.axvline(0, color="gray", linewidth=0.7)
grid[0, 0].legend()
figure.savefig(target, bbox_inches="tight")
