define void @kernel(ptr %buffers, ptr %vals, i64 %begin, i64 %end) nounwind {
entry:
  %v1 = getelementptr ptr, ptr %buffers, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v5 = getelementptr ptr, ptr %buffers, i64 1
  %v6 = load ptr, ptr %v5, align 8
  br label %start
start:
  br label %loop1
loop1:
  %v3 = phi i64 [ %begin, %start ], [ %v11, %body3 ]
  %v4 = icmp slt i64 %v3, %end
  br i1 %v4, label %body3, label %done2
body3:
  %v7 = getelementptr double, ptr %v6, i64 %v3
  %v8 = load double, ptr %v7, align 8
  %v9 = fneg double %v8
  %v10 = getelementptr double, ptr %v2, i64 %v3
  store double %v9, ptr %v10, align 8
  %v11 = add nsw i64 %v3, 1
  br label %loop1
done2:
  ret void
}
